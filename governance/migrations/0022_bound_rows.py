"""Bound rows: the database notes each governed row that a transaction writes, and binds them at the commit to the
transaction's first ledger entry. The triggers on the tables are made after every migrate
(governance/record/services/install.py), because tables of all apps have them."""

import django.contrib.postgres.fields
from django.db import migrations, models

from governance.sql.guards import protect_table

# Transaction-local settings carry what was written until the commit: a temporary table would cost catalogue rows, and a
# real one WAL. A rollback to a savepoint takes them back together with the rows.
#   holdpoint.rows    items as hex          holdpoint.salts   salts as hex
#   holdpoint.entry   the first entry       holdpoint.part    parts written so far
#   holdpoint.forget  ids of erased rows, as hex
FUNCTIONS = """
-- Called for every entry. The first one of a transaction gets its rows.
CREATE FUNCTION holdpoint_bind_entry() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    IF coalesce(current_setting('holdpoint.entry', true), '') = '' THEN
        PERFORM set_config('holdpoint.entry', NEW.id::text, true);
    END IF;
    RETURN NULL;
END $$;

-- An entry for rows that were changed without one: so every change stands in the ledger, also one made by hand.
-- The text that is hashed is that of governance/ledger/rules/entry.py; a test compares the two.
CREATE FUNCTION holdpoint_bind_own_entry(items text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public SET timezone = 'UTC' AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    raw bytea := uuid_send(gen_random_uuid());
    id uuid;
    nonce bytea := uuid_send(gen_random_uuid());
    said jsonb;
    written text;
    payload_digest bytea;
BEGIN
    -- UUIDv7: 48 bits of milliseconds, version 7, the rest random.
    raw := substring(int8send((extract(epoch FROM moment) * 1000)::bigint) FROM 3) || substring(raw FROM 7);
    raw := set_byte(raw, 6, (get_byte(raw, 6) & 15) | 112);
    id := encode(raw, 'hex')::uuid;
    SELECT jsonb_agg(name ORDER BY name) INTO said FROM (
        SELECT DISTINCT shape."table" AS name FROM generate_series(0, length(items) / 108 - 1) AS i
        JOIN governance_rowshape shape
            ON shape.number = (('x' || substr(items, i * 108 + 1, 4))::bit(16)::integer & 1023)) AS named;
    written := '{"rows":' || length(items) / 108 || ',"tables":' || replace(said::text, ', ', ',') || '}';
    payload_digest := sha256(nonce || convert_to(written, 'UTF8'));
    INSERT INTO governance_ledgerentry (id, organization_id, action, subject_type, subject_id, actor_kind, actor_ref,
        reason_code, request_id, trace_id, payload, nonce, payload_sha256, sha256, at)
    VALUES (id, NULL, 'record.rows_changed', 'record', id, 'system', '', '', '', '', written::jsonb, nonce,
        payload_digest, sha256(convert_to('{"action":"record.rows_changed","actor_kind":"system","actor_ref":"","at":"'
            || to_char(moment, 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"') || '","format":"holdpoint-ledger-v1","id":"' || id
            || '","organization":null,"payload_sha256":"' || encode(payload_digest, 'hex')
            || '","reason_code":"","request_id":"","subject_id":"' || id
            || '","subject_type":"record","trace_id":""}', 'UTF8')), moment);
    RETURN id;
END $$;

-- Destroys the salts of erased rows in what was bound before. Without it, whoever guesses the erased values could check
-- the guess against the digest.
CREATE FUNCTION holdpoint_bind_forget(ids text, order_item uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    gone text[] := ARRAY(SELECT DISTINCT substr(ids, i * 32 + 1, 32) FROM generate_series(0, length(ids) / 32 - 1) i);
    part record;
    at integer;
    fresh bytea;
BEGIN
    FOR part IN
        SELECT bound.* FROM governance_boundrows bound WHERE bound.salts IS NOT NULL AND (
            -- An order names its subjects: only what was written together with their entries can hold the rows.
            (order_item IS NOT NULL AND bound.entry_id IN (
                SELECT other.id FROM governance_erasureitem item
                JOIN governance_ledgerentry entry ON entry.subject_id = ANY(item.related)
                JOIN governance_ledgerentry other ON other.txid = entry.txid WHERE item.id = order_item))
            OR (order_item IS NULL AND EXISTS (
                SELECT FROM unnest(gone) one WHERE position(decode(one, 'hex') IN bound.rows) > 0)))
    LOOP
        at := 0;
        fresh := part.salts;
        FOR i IN 0 .. (length(part.rows) - 8) / 54 - 1 LOOP
            IF get_byte(part.rows, 8 + i * 54) >= 128 THEN
                IF encode(substring(part.rows FROM 11 + i * 54 FOR 16), 'hex') = ANY(gone) THEN
                    fresh := overlay(fresh PLACING decode(repeat('00', 16), 'hex') FROM at * 16 + 1);
                END IF;
                at := at + 1;
            END IF;
        END LOOP;
        IF fresh <> part.salts THEN
            PERFORM set_config('holdpoint.forgetting', 'on', true);
            UPDATE governance_boundrows SET salts = fresh WHERE entry_id = part.entry_id AND governance_boundrows.part = part.part;
            PERFORM set_config('holdpoint.forgetting', '', true);
        END IF;
    END LOOP;
END $$;

-- Writes what the transaction has noted so far as the next part of its entry.
CREATE FUNCTION holdpoint_bind_flush() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    items text := current_setting('holdpoint.rows', true);
    salts text := coalesce(current_setting('holdpoint.salts', true), '');
    forget text := coalesce(current_setting('holdpoint.forget', true), '');
    part integer := coalesce(nullif(current_setting('holdpoint.part', true), ''), '0')::integer;
    entry uuid := nullif(current_setting('holdpoint.entry', true), '')::uuid;
BEGIN
    PERFORM set_config('holdpoint.rows', '', true), set_config('holdpoint.salts', '', true),
        set_config('holdpoint.forget', '', true), set_config('holdpoint.part', (part + 1)::text, true);
    IF entry IS NULL THEN
        entry := holdpoint_bind_own_entry(items);
    END IF;
    INSERT INTO governance_boundrows (entry_id, part, rows, salts) VALUES (entry, part,
        int8send((extract(epoch FROM clock_timestamp()) * 1000000)::bigint) || decode(items, 'hex'),
        CASE WHEN salts <> '' THEN decode(salts, 'hex') END);
    IF forget <> '' THEN
        PERFORM holdpoint_bind_forget(forget, nullif(current_setting('holdpoint.forget_item', true), '')::uuid);
        PERFORM set_config('holdpoint.forget_item', '', true);
    END IF;
END $$;

-- At the commit, once per written row: the first call writes, the others find nothing left.
CREATE FUNCTION holdpoint_bind_end() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    IF current_setting('holdpoint.rows', true) <> '' THEN
        PERFORM holdpoint_bind_flush();
    END IF;
    RETURN NULL;
END $$;

-- The version says which of two images of a row is the later one: with it, an older copy that is put back is found.
CREATE FUNCTION holdpoint_bind_version() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    NEW.row_version := OLD.row_version + 1;
    RETURN NEW;
END $$;

CREATE FUNCTION governance_boundrows_guard() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND current_setting('holdpoint.forgetting', true) = 'on' AND NEW.entry_id = OLD.entry_id
        AND NEW.part = OLD.part AND NEW.rows = OLD.rows AND length(NEW.salts) = length(OLD.salts)
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'append-only: % on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'HP001';
END $$;

REVOKE ALL ON FUNCTION holdpoint_bind_own_entry(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION holdpoint_bind_forget(text, uuid) FROM PUBLIC;
REVOKE ALL ON FUNCTION holdpoint_bind_flush() FROM PUBLIC;

CREATE TRIGGER bind_entry AFTER INSERT ON governance_ledgerentry
    FOR EACH ROW EXECUTE FUNCTION holdpoint_bind_entry();
ALTER TABLE governance_ledgerentry ENABLE ALWAYS TRIGGER bind_entry;
-- Parts that name a deletion (a digest of zeros), of which there are few: whether a missing row was deleted is asked often.
CREATE INDEX bound_deletions ON governance_boundrows (entry_id)
    WHERE position(decode(repeat('00', 32), 'hex') IN rows) > 0;
DROP TRIGGER append_only_rows ON governance_boundrows;
CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON governance_boundrows
    FOR EACH ROW EXECUTE FUNCTION governance_boundrows_guard();
ALTER TABLE governance_boundrows ENABLE ALWAYS TRIGGER append_only_rows;
"""
DROP_FUNCTIONS = """
DROP INDEX bound_deletions;
DROP TRIGGER bind_entry ON governance_ledgerentry;
DO $$ DECLARE one record; BEGIN
    FOR one IN SELECT "table" AS name FROM governance_rowshape GROUP BY 1 LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS bind_rows ON %1$I; DROP TRIGGER IF EXISTS bind_changes ON %1$I;
            DROP TRIGGER IF EXISTS zz_bind_version ON %1$I; DROP TRIGGER IF EXISTS bind_end ON %1$I;
            DROP FUNCTION IF EXISTS %2$I()', one.name, 'holdpoint_bind_' || one.name);
    END LOOP;
END $$;
DROP TRIGGER append_only_rows ON governance_boundrows;
CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON governance_boundrows
    FOR EACH ROW EXECUTE FUNCTION holdpoint_refuse_change();
DROP FUNCTION governance_boundrows_guard();
DROP FUNCTION holdpoint_bind_version();
DROP FUNCTION holdpoint_bind_end();
DROP FUNCTION holdpoint_bind_flush();
DROP FUNCTION holdpoint_bind_forget(text, uuid);
DROP FUNCTION holdpoint_bind_own_entry(text);
DROP FUNCTION holdpoint_bind_entry();
"""


class Migration(migrations.Migration):
    dependencies = [("governance", "0021_passkeys")]
    operations = [
        migrations.CreateModel(
            name="BoundRows",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "entry_id", "part", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("entry_id", models.UUIDField()),
                ("part", models.PositiveIntegerField()),
                ("rows", models.BinaryField()),
                ("salts", models.BinaryField(null=True)),
            ],
            options={"verbose_name_plural": "bound rows"},
        ),
        migrations.CreateModel(
            name="RowShape",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "number", "shape", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "number",
                    models.PositiveSmallIntegerField(help_text="Of the table; see governance/record/rules/tables.py."),
                ),
                ("shape", models.PositiveSmallIntegerField()),
                ("table", models.CharField(max_length=63)),
                ("key", models.CharField(help_text="The column of the primary key.", max_length=63)),
                ("key_kind", models.CharField(max_length=4)),
                (
                    "columns",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=63), size=None),
                ),
                ("salted", models.BooleanField()),
            ],
        ),
        migrations.AddConstraint(
            model_name="rowshape",
            constraint=models.CheckConstraint(
                condition=models.Q(("key_kind__in", ["uuid", "int", "text"])), name="row_shape_known_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="rowshape",
            constraint=models.CheckConstraint(
                condition=models.Q(("number__lt", 1024), ("shape__lt", 32)), name="row_shape_fits_its_bits"
            ),
        ),
        protect_table("governance_boundrows"),
        protect_table("governance_rowshape"),
        migrations.RunSQL(sql=FUNCTIONS, reverse_sql=DROP_FUNCTIONS),
    ]
