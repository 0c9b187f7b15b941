"""An erasure destroys the salts of earlier images only, and those of baselines too. And the round through the record
remembers rows that are later than what it has seen, until it meets their entry."""

from django.db import migrations, models

# `ids` names each erased row, in hexadecimal digits: its table (4), its id (32), the version from which its salts stay (8).
FORGET = """
CREATE OR REPLACE FUNCTION holdpoint_bind_forget(ids text, order_item uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    -- A person's rows are written with entries about many subjects: those are looked for everywhere.
    narrow boolean := EXISTS (SELECT FROM governance_erasureitem WHERE id = order_item AND kind IN ('attempt', 'run'));
    until jsonb := (SELECT jsonb_object_agg(substr(ids, i * 44 + 1, 36), substr(ids, i * 44 + 37, 8) ORDER BY i)
        FROM generate_series(0, length(ids) / 44 - 1) AS i);
    part record;
    at integer;
    row_id text;
    fresh bytea;
BEGIN
    FOR part IN
        SELECT bound.* FROM governance_boundrows bound WHERE bound.salts IS NOT NULL AND (
            -- An order names its subjects: what was written together with their entries can hold the rows.
            (narrow AND bound.entry_id IN (
                SELECT other.id FROM governance_erasureitem item
                JOIN governance_ledgerentry entry ON entry.subject_id = ANY(item.related)
                JOIN governance_ledgerentry other ON other.txid = entry.txid WHERE item.id = order_item))
            -- And what the database bound by itself: a baseline has rows of every subject.
            OR ((NOT narrow OR bound.entry_id IN (SELECT own.id FROM governance_ledgerentry own
                    WHERE own.action IN ('record.baseline', 'record.rows_changed')))
                AND EXISTS (SELECT FROM jsonb_object_keys(until) one
                    WHERE position(decode(substr(one, 5), 'hex') IN bound.rows) > 0)))
    LOOP
        at := 0;
        fresh := part.salts;
        FOR i IN 0 .. (length(part.rows) - 8) / 54 - 1 LOOP
            IF get_byte(part.rows, 8 + i * 54) >= 128 THEN
                -- The table's number without the bits of shape and salt. A person's reference has the person's id.
                row_id := lpad(to_hex((get_byte(part.rows, 8 + i * 54) & 3) * 256 + get_byte(part.rows, 9 + i * 54)),
                    4, '0') || encode(substring(part.rows FROM 11 + i * 54 FOR 16), 'hex');
                -- Hexadecimal digits of one length sort like the numbers.
                IF encode(substring(part.rows FROM 27 + i * 54 FOR 4), 'hex') COLLATE "C" < until ->> row_id THEN
                    fresh := overlay(fresh PLACING decode(repeat('00', 16), 'hex') FROM at * 16 + 1);
                END IF;
                at := at + 1;
            END IF;
        END LOOP;
        IF fresh <> part.salts THEN
            PERFORM set_config('holdpoint.forgetting', 'on', true);
            UPDATE governance_boundrows SET salts = fresh
                WHERE entry_id = part.entry_id AND governance_boundrows.part = part.part;
            PERFORM set_config('holdpoint.forgetting', '', true);
        END IF;
    END LOOP;
END $$;
-- What the database bound by itself is asked for at each erasure, and is little.
CREATE INDEX ledger_own_entries ON governance_ledgerentry (id)
    WHERE action IN ('record.baseline', 'record.rows_changed');
"""

# The triggers of the tables are made after each migrate; migration 0022 knows one of them by its former name only.
BACK = """
DROP INDEX ledger_own_entries;
DO $$ DECLARE one record; BEGIN
    FOR one IN SELECT "table" AS name FROM governance_rowshape GROUP BY 1 LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS bind_rows_end ON %I', one.name);
    END LOOP;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("governance", "0026_ledger_moves")]
    operations = [
        # Back: the function of 0022 would destroy too many salts. This one does the same for its callers.
        migrations.RunSQL(sql=FORGET, reverse_sql=BACK),
        migrations.AddField(
            model_name="recordprogress",
            name="later",
            field=models.JSONField(
                default=dict, help_text="Rows whose version is later than the items that this round has met so far."
            ),
        ),
    ]
