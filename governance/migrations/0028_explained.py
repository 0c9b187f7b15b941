"""What the database refuses beside changes of the record: moves that nothing explains, erasures past the door, people's
references that are not what they commit to, and ledger entries with another time than the clock's."""

from importlib import import_module

from django.db import migrations

from governance.sql.erasable import SET_ASIDE, door_replaced, first_text
from governance.sql.explained import (
    DROP_OWNER_ONLY,
    FIXED_PATH,
    OWNER_ONLY,
    door_only,
    entry_about,
    explained,
    fixed_columns,
    rows_stay,
)

# For the way back: the body that a person's erasing function had before.
RETENTION = import_module("governance.migrations.0009_retention")
# The item of this transaction. New: only from within a function of the tables' owner. Before, a role that may UPDATE an
# attempt could name any item in the setting and erase without the door's questions about retention.
ITEM = f"""
CREATE OR REPLACE FUNCTION holdpoint_erasure_item() RETURNS governance_erasureitem LANGUAGE plpgsql {SET_ASIDE} AS $$
DECLARE
    item governance_erasureitem;
BEGIN
    IF NOT holdpoint_by_owner() THEN
        RAISE EXCEPTION 'append-only: only the functions that erase may do this' USING ERRCODE = 'HP001';
    END IF;
    SELECT i.* INTO item FROM governance_erasureitem i JOIN governance_erasureorder o ON o.id = i.order_id
    WHERE i.id = nullif(current_setting('holdpoint.erasure', true), '')::uuid
        AND i.state = 'waiting' AND o.finished_at IS NULL;
    IF item.id IS NULL THEN
        RAISE EXCEPTION 'append-only: no order to erase this' USING ERRCODE = 'HP001';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(holdpoint_hold_lock(item.organization_id));
    IF holdpoint_held(item) THEN
        RAISE EXCEPTION 'append-only: a legal hold covers this' USING ERRCODE = 'HP003';
    END IF;
    RETURN item;
END $$;
"""  # noqa: S608
# New: the order is in the ledger, under the name of the person who gave it; an order for a deletion has its accepted
# request. `retention_until` is asked by the doors, from columns that do not change.
TAKE = f"""
CREATE FUNCTION holdpoint_ordered(wanted uuid) RETURNS boolean LANGUAGE sql STABLE {SET_ASIDE} AS $$
    SELECT EXISTS (
        SELECT FROM governance_erasureorder o
        JOIN governance_personreference p ON p.user_id = o.ordered_by AND p.commitment = o.ordered_by_ref
        WHERE o.id = wanted AND o.finished_at IS NULL
            AND EXISTS (SELECT FROM governance_ledgerentry e WHERE e.subject_id = o.id
                AND e.organization_id = o.organization_id AND e.actor_kind = 'person'
                AND e.actor_ref = o.ordered_by_ref)
            AND (o.kind <> 'deletion' OR EXISTS (SELECT FROM governance_deletionrequest d WHERE d.order_id = o.id
                AND d.organization_id = o.organization_id AND d.state = 'accepted')))
$$;
CREATE OR REPLACE FUNCTION holdpoint_erasure_take(wanted uuid, of_kind text) RETURNS governance_erasureitem
LANGUAGE plpgsql {SET_ASIDE} AS $$
DECLARE
    item governance_erasureitem;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'an erasure needs read committed: an older snapshot would not see a hold';
    END IF;
    SELECT i.* INTO item FROM governance_erasureitem i JOIN governance_erasureorder o ON o.id = i.order_id
    WHERE i.id = wanted AND i.kind = of_kind AND i.state = 'waiting' AND o.finished_at IS NULL
        AND i.organization_id = o.organization_id
    FOR NO KEY UPDATE OF i;
    IF item.id IS NULL OR NOT holdpoint_ordered(item.order_id) THEN
        RAISE EXCEPTION 'append-only: no order to erase this' USING ERRCODE = 'HP001';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(holdpoint_hold_lock(item.organization_id));
    RETURN item;
END $$;
"""  # noqa: S608
# The retention of people and of events without a run stands in no column. The application sends its end with the item;
# the database computes a lower bound itself, so that an item alone cannot shorten it.
YEARS = f"""
CREATE FUNCTION holdpoint_retention_years(place uuid) RETURNS integer LANGUAGE sql STABLE {SET_ASIDE} AS $$
    WITH known AS (
        SELECT DISTINCT ON (code) code, (document #>> '{{retention,default_years}}')::integer AS years
        FROM governance_regionprofile ORDER BY code, id DESC
    ), mine AS (
        SELECT known.years FROM governance_organization o JOIN known ON known.code = ANY(o.regions) WHERE o.id = place
    )
    SELECT greatest(
        coalesce((SELECT max(years) FROM mine), (SELECT max(years) FROM known), 0),
        (SELECT max((d.document ->> 'retention_years')::integer) FROM governance_contractdocument d
            JOIN governance_contract c ON c.id = d.contract_id
            WHERE c.organization_id = place AND c.state <> 'draft' AND d.area = 'regional_compliance'))
$$;
"""  # noqa: S608
PERSON = """
DECLARE
    item governance_erasureitem;
    person governance_user;
    known governance_personreference;
    place uuid;
    last timestamptz;
BEGIN
    item := holdpoint_erasure_take(wanted, 'person');
    SELECT * INTO person FROM governance_user WHERE id = item.subject_id FOR NO KEY UPDATE;
    SELECT * INTO known FROM governance_personreference WHERE user_id = item.subject_id FOR UPDATE;
    IF person.id IS NULL OR known.user_id IS NULL THEN
        RETURN 'nothing_to_erase';
    END IF;
    -- People are erased only because somebody asked for it, about this person.
    IF NOT EXISTS (SELECT FROM governance_deletionrequest
        WHERE order_id = item.order_id AND about = 'person' AND commitment = known.commitment)
    THEN
        RAISE EXCEPTION 'append-only: no request to erase this' USING ERRCODE = 'HP001';
    END IF;
    UPDATE governance_erasureitem SET refs = ARRAY[known.commitment] WHERE id = item.id RETURNING * INTO item;
    IF holdpoint_held(item) THEN
        RETURN 'legal_hold';
    END IF;
    last := coalesce((SELECT max(at) FROM governance_ledgerentry WHERE actor_ref = known.commitment),
        person.date_joined);
    -- Wherever this person acted a hold counts; locks in one order, so that two of these cannot wait for each other.
    FOR place IN SELECT DISTINCT organization_id FROM governance_ledgerentry
        WHERE actor_ref = known.commitment AND organization_id IS NOT NULL ORDER BY 1
    LOOP
        PERFORM pg_advisory_xact_lock_shared(holdpoint_hold_lock(place));
        IF EXISTS (SELECT FROM governance_legalhold WHERE organization_id = place AND state = 'active'
            AND (scope = 'organization' OR (scope = 'person' AND target = known.commitment)))
        THEN
            RETURN 'legal_hold';
        END IF;
        IF last + make_interval(years => holdpoint_retention_years(place)) > statement_timestamp() THEN
            RETURN CASE WHEN person.is_active THEN 'not_finished' ELSE 'retention_not_over' END;
        END IF;
    END LOOP;
    IF person.is_active THEN
        RETURN 'not_finished';
    END IF;
    IF item.not_before IS NULL OR item.not_before > statement_timestamp() THEN
        RETURN 'retention_not_over';
    END IF;
    DELETE FROM governance_personreference WHERE user_id = person.id;
    DELETE FROM governance_user_groups WHERE user_id = person.id;
    DELETE FROM governance_user_user_permissions WHERE user_id = person.id;
    UPDATE governance_user SET username = 'erased-' || id::text, first_name = '', last_name = '', email = '',
        password = '!', is_staff = FALSE, is_superuser = FALSE, last_login = NULL WHERE id = person.id;
    RETURN '';
END
"""
# A commitment that does not come from its salt and its person would make the record name somebody else.
REFERENCES = """
CREATE FUNCTION holdpoint_refuse_reference() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'append-only: % does not commit to its person', TG_TABLE_NAME USING ERRCODE = 'HP001';
END $$;
CREATE TRIGGER commits BEFORE INSERT ON governance_personreference FOR EACH ROW
    WHEN (octet_length(NEW.salt) <> 32
        OR NEW.commitment <> encode(sha256(NEW.salt || convert_to(NEW.user_id::text, 'UTF8')), 'hex'))
    EXECUTE FUNCTION holdpoint_refuse_reference();
CREATE TRIGGER fixed_columns BEFORE UPDATE ON governance_personreference FOR EACH ROW
    EXECUTE FUNCTION holdpoint_refuse_change();
CREATE TRIGGER door_only BEFORE DELETE ON governance_personreference FOR EACH ROW
    EXECUTE FUNCTION holdpoint_owner_only();
CREATE TRIGGER table_stays BEFORE TRUNCATE ON governance_personreference FOR EACH STATEMENT
    EXECUTE FUNCTION holdpoint_refuse_change();
ALTER TABLE governance_personreference ENABLE ALWAYS TRIGGER commits;
ALTER TABLE governance_personreference ENABLE ALWAYS TRIGGER fixed_columns;
ALTER TABLE governance_personreference ENABLE ALWAYS TRIGGER door_only;
ALTER TABLE governance_personreference ENABLE ALWAYS TRIGGER table_stays;
"""
DROP_REFERENCES = """
DROP TRIGGER commits ON governance_personreference;
DROP TRIGGER fixed_columns ON governance_personreference;
DROP TRIGGER door_only ON governance_personreference;
DROP TRIGGER table_stays ON governance_personreference;
DROP FUNCTION holdpoint_refuse_reference();
"""
# The clock and the system date back: a deadline that passed while nothing ran is recorded with its own time. Nobody
# else does, and nobody is ahead of the clock. The WHEN clause costs an entry that is in time two comparisons.
MOMENT = f"""
-- Tests pass their own times and replace this function; the manifest of guards names that anywhere else.
CREATE FUNCTION holdpoint_any_moment() RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT FALSE $$;
CREATE FUNCTION holdpoint_refuse_moment() RETURNS trigger LANGUAGE plpgsql {FIXED_PATH} AS $$
BEGIN
    IF NEW.txid <> pg_current_xact_id()::text::bigint THEN
        RAISE EXCEPTION 'append-only: an entry of another transaction' USING ERRCODE = 'HP005';
    END IF;
    IF NOT public.holdpoint_any_moment() THEN
        RAISE EXCEPTION 'append-only: an entry of another time' USING ERRCODE = 'HP005';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION holdpoint_refuse_time() RETURNS trigger LANGUAGE plpgsql {FIXED_PATH} AS $$
BEGIN
    IF NOT public.holdpoint_any_moment() THEN
        RAISE EXCEPTION 'append-only: % on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'HP001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER moment_in_time BEFORE INSERT ON governance_ledgerentry FOR EACH ROW
    WHEN (NEW.at > clock_timestamp() + interval '5 minutes'
        OR (NEW.at < clock_timestamp() - interval '24 hours' AND NEW.actor_kind NOT IN ('clock', 'system'))
        OR NEW.txid <> pg_current_xact_id()::text::bigint)
    EXECUTE FUNCTION holdpoint_refuse_moment();
ALTER TABLE governance_ledgerentry ENABLE ALWAYS TRIGGER moment_in_time;
"""
DROP_MOMENT = """
DROP TRIGGER moment_in_time ON governance_ledgerentry;
DROP FUNCTION holdpoint_refuse_moment();
DROP FUNCTION holdpoint_refuse_time();
DROP FUNCTION holdpoint_any_moment();
"""
ABOUT_ITSELF = entry_about("NEW.id")


class Migration(migrations.Migration):
    dependencies = [("governance", "0027_record_versions")]
    operations = [
        migrations.RunSQL(sql=OWNER_ONLY, reverse_sql=DROP_OWNER_ONLY),
        migrations.RunSQL(sql=ITEM, reverse_sql=first_text("holdpoint_erasure_item")),
        migrations.RunSQL(
            sql=TAKE, reverse_sql=first_text("holdpoint_erasure_take") + "DROP FUNCTION holdpoint_ordered(uuid);"
        ),
        migrations.RunSQL(sql=YEARS, reverse_sql="DROP FUNCTION holdpoint_retention_years(uuid);"),
        migrations.RunSQL(
            sql=door_replaced("governance_erase_person", PERSON),
            reverse_sql=door_replaced("governance_erase_person", RETENTION.PERSON),
        ),
        migrations.RunSQL(sql=REFERENCES, reverse_sql=DROP_REFERENCES),
        migrations.RunSQL(sql=MOMENT, reverse_sql=DROP_MOMENT),
        explained("governance_contract", moved=["state", "closed_reason_code"], by=ABOUT_ITSELF),
        explained("governance_policy", moved=["state"], by=ABOUT_ITSELF),
        explained("governance_shutdown", moved=["state", "released_by_ref", "released_at"], by=ABOUT_ITSELF),
        explained("governance_authoritychange", moved=["state", "decided_by_id", "result"], by=ABOUT_ITSELF),
        explained("governance_legalhold", moved=["state", "released_by_ref", "released_at"], by=ABOUT_ITSELF),
        explained(
            "governance_deletionrequest", moved=["state", "order_id", "decided_by_ref", "reason_code"], by=ABOUT_ITSELF
        ),
        explained("governance_erasureorder", moved=["finished_at"], by=ABOUT_ITSELF),
        fixed_columns(
            "governance_erasureorder",
            ["organization_id", "kind", "reason_code", "note_id", "ordered_by", "ordered_by_ref", "created_at"],
        ),
        rows_stay("governance_erasureorder"),
        explained(
            "governance_erasureitem", moved=["state", "problem", "finished_at"], by=entry_about("NEW.subject_id")
        ),
        fixed_columns("governance_erasureitem", ["not_before"]),
        door_only("governance_erasureitem", ["contract", "related", "entries"]),
    ]
