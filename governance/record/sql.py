"""SQL of binding: a row's image, the trigger function of each governed table, and the triggers."""

from dataclasses import dataclass

from governance.record.rules.items import SALTED, SHAPES

# Functions run as the tables' owner. With the caller's search path, something of the caller's own could take the place
# of what they call; with the caller's time zone, the same moment would be written differently.
AS_OWNER = "SECURITY DEFINER SET search_path = pg_catalog, public SET timezone = 'UTC'"
# Hex digits of items that a transaction carries along. Each row copies them once: without a limit, a transaction of
# many rows would take time with the square of their number.
MOST_CARRIED = 16_000


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class TableShape:
    """How rows of a table are written as text now. `whole`: the image has all columns, so no list is needed.
    `versioned`: rows can change, and have a `row_version`."""

    number: int
    shape: int
    table: str
    key: str
    key_kind: str
    columns: tuple[str, ...]
    salted: bool
    whole: bool = True
    versioned: bool = True

    @property
    def code(self) -> int:
        return self.number | self.shape << SHAPES | (SALTED if self.salted else 0)

    @property
    def function(self) -> str:
        return f"holdpoint_bind_{self.table}"


def image(shape: TableShape, row: str) -> str:
    """An expression: the canonical text of the row that the alias or variable `row` stands for."""
    if shape.whole:
        return f"row_to_json({row})::text"
    listed = ", ".join(f"{row}.{quoted(name)}" for name in shape.columns)
    return f"(SELECT row_to_json(only_these)::text FROM (SELECT {listed}) AS only_these)"  # noqa: S608


def key_bytes(shape: TableShape, row: str) -> str:
    """An expression: the 32 hex digits that name a row inside bound rows."""
    key = f"{row}.{quoted(shape.key)}"
    match shape.key_kind:
        case "uuid":
            return f"replace({key}::text, '-', '')"
        case "int":
            return f"lpad(to_hex({key}::bigint), 32, '0')"
        case _:
            return f"substr(encode(sha256(convert_to({key}::text, 'UTF8')), 'hex'), 1, 32)"


def _item(shape: TableShape, row: str) -> str:
    version = f"lpad(to_hex({row}.row_version), 8, '0')" if shape.versioned else "'00000001'"
    salt = "salt || " if shape.salted else ""
    digest = f"encode(sha256({salt}convert_to({image(shape, row)}, 'UTF8')), 'hex')"
    return f"'{shape.code:04x}' || {key_bytes(shape, row)} || {version} || {digest}"


def note(shape: TableShape, row: str) -> str:
    """Statements that note one row as it is now. They use the variables `so_far` and, if salted, `salt`."""
    salted = ""
    if shape.salted:
        salted = """
        salt := uuid_send(gen_random_uuid());
        PERFORM set_config('holdpoint.salts',
            coalesce(current_setting('holdpoint.salts', true), '') || encode(salt, 'hex'), true);"""
    return f"""
        so_far := coalesce(current_setting('holdpoint.rows', true), '');
        IF length(so_far) > {MOST_CARRIED} THEN
            PERFORM public.holdpoint_bind_flush();
            so_far := '';
        END IF;{salted}
        PERFORM set_config('holdpoint.rows', so_far || {_item(shape, row)}, true);"""


# What an erasure or a deletion leaves: the salts of earlier images are destroyed at the commit.
_FORGET = """
        PERFORM set_config('holdpoint.forget', coalesce(current_setting('holdpoint.forget', true), '') || {key}, true),
            set_config('holdpoint.forget_item', coalesce(current_setting('holdpoint.erasure', true), ''), true);"""


def bind_body(shape: TableShape) -> str:
    """The body of the table's trigger function."""
    gone = f"""
        PERFORM set_config('holdpoint.rows', coalesce(current_setting('holdpoint.rows', true), '')
            || '{shape.code:04x}' || {key_bytes(shape, "OLD")}
            || lpad(to_hex({"OLD.row_version + 1" if shape.versioned else "2"}), 8, '0') || repeat('0', 64), true);"""
    erased = ""
    if shape.salted:
        forget = _FORGET.format(key=key_bytes(shape, "OLD"))
        gone += f"""
        PERFORM set_config('holdpoint.salts',
            coalesce(current_setting('holdpoint.salts', true), '') || repeat('0', 32), true);{forget}"""
        erased = f"""
        IF TG_OP = 'UPDATE' AND coalesce(current_setting('holdpoint.erasure', true), '') <> '' THEN{forget}
        END IF;"""
    salt = "\n    salt bytea;" if shape.salted else ""
    return f"""
DECLARE
    so_far text;{salt}
BEGIN
    IF TG_OP = 'DELETE' THEN{gone}
    ELSE{note(shape, "NEW")}{erased}
    END IF;
    RETURN NULL;
END """


def bind_function(shape: TableShape) -> str:
    return (
        f"CREATE OR REPLACE FUNCTION {quoted(shape.function)}() RETURNS trigger LANGUAGE plpgsql {AS_OWNER} "
        f"AS $bind${bind_body(shape)}$bind$"
    )


def bind_existing(shape: TableShape, *, first: int, count: int) -> str:
    """Notes these rows of the table: once, when it gets its triggers."""
    salt = "\n    salt bytea;" if shape.salted else ""
    return f"""
DO $bind$
DECLARE
    one public.{quoted(shape.table)};
    so_far text;{salt}
BEGIN
    SET LOCAL timezone = 'UTC';
    FOR one IN SELECT * FROM public.{quoted(shape.table)}
        ORDER BY {quoted(shape.key)} OFFSET {first} LIMIT {count} LOOP{note(shape, "one")}
    END LOOP;
    IF current_setting('holdpoint.rows', true) <> '' THEN
        PERFORM public.holdpoint_bind_flush();
    END IF;
END $bind$"""  # noqa: S608


def bind_triggers(shape: TableShape) -> list[str]:
    """The triggers of one table, made anew. ENABLE ALWAYS: replica mode skips a plain trigger."""
    table = f"public.{quoted(shape.table)}"
    made = [
        ("bind_rows", f"CREATE TRIGGER bind_rows AFTER INSERT OR DELETE ON {table} FOR EACH ROW", shape.function),
        (
            "bind_end",
            f"CREATE CONSTRAINT TRIGGER bind_end AFTER INSERT OR UPDATE OR DELETE ON {table} "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW",
            "holdpoint_bind_end",
        ),
    ]
    if shape.versioned:
        # The name sorts last: the guards before it compare NEW with OLD column by column and must not see the new
        # version. Loose columns alone change nothing that is bound.
        changed = " OR ".join(f"OLD.{quoted(c)} IS DISTINCT FROM NEW.{quoted(c)}" for c in shape.columns)
        changed = "OLD.* IS DISTINCT FROM NEW.*" if shape.whole else changed
        made += [
            (
                "zz_bind_version",
                f"CREATE TRIGGER zz_bind_version BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({changed})",
                "holdpoint_bind_version",
            ),
            (
                "bind_changes",
                f"CREATE TRIGGER bind_changes AFTER UPDATE ON {table} FOR EACH ROW "
                "WHEN (OLD.row_version IS DISTINCT FROM NEW.row_version)",
                shape.function,
            ),
        ]
    statements = []
    for name, text, function in made:
        statements += [
            f"DROP TRIGGER IF EXISTS {name} ON {table}",
            f"{text} EXECUTE FUNCTION {quoted(function)}()",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}",
        ]
    return statements
