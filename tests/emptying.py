"""After a test with real transactions, the database is again as the migrations left it.

Django would truncate every table and insert the seeds again, which takes most of a second each time. This deletes the
rows (or truncates after a large test, where checking every foreign key would take minutes) and restores the seeds of
those tables whose seeds were changed. The triggers that protect the record are lifted for it: only here, and only as
the owner.
"""

from django.db import connection
from django.utils import timezone

from governance.record.services.manifest import guards_adopt

PRISTINE = """
CREATE SCHEMA pristine;
DO $$ DECLARE name text; filled boolean; BEGIN
    FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', name) INTO filled;
        IF filled THEN EXECUTE format('CREATE TABLE pristine.%1$I AS TABLE public.%1$I', name); END IF;
    END LOOP;
END $$;

CREATE FUNCTION pristine.lift(name text, lifted boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE one record; BEGIN
    FOR one IN SELECT tgname, tgenabled FROM pristine.triggers WHERE relname = name LOOP
        EXECUTE format('ALTER TABLE public.%I %s TRIGGER %I', name, CASE WHEN lifted THEN 'DISABLE'
            WHEN one.tgenabled = 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END, one.tgname);
    END LOOP;
END $$;
CREATE TABLE pristine.triggers AS
    SELECT relname::text, tgname, tgenabled FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
    WHERE relnamespace = 'public'::regnamespace AND NOT tgisinternal;

CREATE FUNCTION pristine.refill(name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE columns text; BEGIN
    SELECT string_agg(quote_ident(column_name), ', ') INTO columns FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name = name AND is_generated = 'NEVER';
    EXECUTE format('INSERT INTO public.%1$I (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM pristine.%1$I',
        name, columns);
END $$;

-- Who wrote the seeds: a row that was changed or replaced has a later transaction, so with the same number of rows the
-- sum is larger.
CREATE FUNCTION pristine.writers(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text; BEGIN
    EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(xmin::text::bigint), 0) FROM public.%I', name) INTO found;
    RETURN found;
END $$;
CREATE TABLE pristine.written AS
    SELECT relname::text, pristine.writers(relname) AS writers FROM pg_class
    WHERE relnamespace = 'pristine'::regnamespace AND relkind = 'r' AND relname NOT IN ('triggers', 'written');

CREATE FUNCTION pristine.restore() RETURNS void LANGUAGE plpgsql AS $$
DECLARE name text; names text[] := '{}'; filled boolean; large boolean; seeds text; BEGIN
    SELECT max(pg_relation_size(oid)) > 8000000 INTO large FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r';
    FOR name IN SELECT relname FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'django_migrations' LOOP
        SELECT writers INTO seeds FROM pristine.written WHERE relname = name;
        IF seeds IS NULL THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', name) INTO filled;
        ELSE
            filled := seeds <> pristine.writers(name);
        END IF;
        IF large OR filled THEN names := names || name; END IF;
    END LOOP;
    PERFORM pristine.lift(one, true) FROM unnest(names) AS one;
    IF large THEN
        EXECUTE 'TRUNCATE ' || (SELECT string_agg(format('public.%I', one), ', ') FROM unnest(names) AS one);
    ELSE
        FOREACH name IN ARRAY names LOOP EXECUTE format('DELETE FROM public.%I', name); END LOOP;
    END IF;
    PERFORM pristine.refill(one) FROM unnest(names) AS one
        WHERE to_regclass('pristine.' || quote_ident(one)) IS NOT NULL;
    UPDATE pristine.written SET writers = pristine.writers(relname) WHERE relname = ANY (names);
    SET CONSTRAINTS ALL IMMEDIATE;
    PERFORM pristine.lift(one, false) FROM unnest(names) AS one;
END $$;
"""


# Tests pass their own times: entries may be of any day. The test of that rule puts the function back.
ANY_MOMENT = """
CREATE OR REPLACE FUNCTION holdpoint_any_moment() RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT TRUE $$
"""


def remember_pristine() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace('pristine')")
        if cursor.fetchone() == (None,):
            cursor.execute(ANY_MOMENT)
            guards_adopt(at=timezone.now())
            cursor.execute(PRISTINE)


def empty_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pristine.restore()")


def fresh_indexes(table: str) -> None:
    """For tests that count pages: rows that other tests deleted are still in the indexes. Call it in a transaction that
    is rolled back."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pristine.lift(%s, true)", [table])
        cursor.execute(f"TRUNCATE {connection.ops.quote_name(table)} CASCADE")
        cursor.execute("SELECT pristine.lift(%s, false)", [table])
