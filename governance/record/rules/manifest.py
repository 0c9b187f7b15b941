"""The manifest of guards: what protects the record in the database, as plain data, and how two of them differ. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

# kind ("trigger") -> name ("append_only_rows on attempts_receipt") -> facts, by name.
Facts = Mapping[str, Any]
Manifest = Mapping[str, Mapping[str, Facts]]

# How a difference of one fact is said. The value itself is not: definitions are long, and the manifest has them.
WORDS = {
    "body": "its body differs",
    "definition": "its definition differs",
    "owner": "another role owns it",
    "grants": "other rights are given on it",
    "columns": "other rights are given on its columns",
    "settings": "its settings (search_path) differ",
    "definer": "it runs with the rights of another role",
    "row_security": "its row security differs",
    "members": "other roles may act as it",
    "member_of": "it may act as other roles",
    "value": "its value differs",
}
ENABLED = {"A": "always on", "O": "skipped in replica mode", "R": "on in replica mode only", "D": "off"}
# Attributes of a role that are true or false.
POWERS = {
    "superuser": "superuser",
    "bypass_row_security": "able to pass row security",
    "create_roles": "able to make roles",
    "replication": "able to replicate",
    "login": "able to sign in",
}

# PostgreSQL writes a list of texts in one way, and reads what it wrote back as another expression of the same meaning:
#   (ARRAY['a'::character varying])::text[]   and, after a dump was restored,   ARRAY[('a'::character varying)::text]
_LITERAL = r"'(?:[^']|'')*'"
_CAST_TWICE = re.compile(rf"\(({_LITERAL})::character varying\)::text")
_CAST_ONCE = re.compile(rf"({_LITERAL})::character varying(?![\w(\[])")
_CAST_LIST = re.compile(rf"\(ARRAY\[((?:{_LITERAL}(?:, )?)*)\]\)::text\[\]")


def definition_settled(text: str) -> str:
    """A definition in one form, whether it was written by a migration or by a restored dump. Without it, every restored
    database would look as if all its constraints had been changed."""
    return _CAST_LIST.sub(r"ARRAY[\1]", _CAST_ONCE.sub(r"\1", _CAST_TWICE.sub(r"\1", text)))


def manifest_counts(manifest: Manifest) -> dict[str, int]:
    return {kind: len(rows) for kind, rows in sorted(manifest.items())}


def manifest_differences(*, adopted: Manifest, live: Manifest) -> list[str]:
    """Each difference in words, in a fixed order. Empty: nothing differs."""
    return [
        text for kind in sorted({*adopted, *live}) for text in _of_kind(kind, adopted.get(kind, {}), live.get(kind, {}))
    ]


def _of_kind(kind: str, adopted: Mapping[str, Facts], live: Mapping[str, Facts]) -> Iterator[str]:
    for name in sorted({*adopted, *live}):
        if name not in live:
            yield f"{kind} {name}: it is gone"
        elif name not in adopted:
            yield f"{kind} {name}: it is new"
        else:
            yield from (f"{kind} {name}: {text}" for text in _of_one(adopted[name], live[name]))


def _of_one(was: Facts, now: Facts) -> Iterator[str]:
    for fact in sorted({*was, *now}):
        if was.get(fact) == now.get(fact):
            continue
        if fact == "enabled":
            yield ENABLED.get(now.get(fact, ""), "its mode differs")
        elif fact == "not_valid":
            yield "it is not checked for existing rows (NOT VALID)" if now.get(fact) else "it is checked for all rows"
        elif fact in POWERS:
            yield f"is {POWERS[fact]} now" if now.get(fact) else f"is not {POWERS[fact]} any more"
        else:
            yield WORDS.get(fact, f"{fact} differs")
