"""Which metadata an attempt may have. Only the outer shape is checked here; `governance.boundary.rules` checks the
schema inside."""

from governance.boundary.rules.fact_declarations import LONGEST_LABEL, MOST_FACTS, MOST_VALUES
from governance.boundary.rules.facts import FACT_TYPES
from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.schema_parts import (
    SLUG_PATTERN,
    Schema,
    array,
    choice,
    closed_object,
    document,
    flag,
    integer,
    text,
)

_TITLE = "Metadata-only boundary"
_CURRENCY = r"^[A-Z]{3}$"
_FACT_NAME = r"^[a-z][a-z0-9_]{0,62}$"


def _fact() -> Schema:
    fact = closed_object(
        description="One fact.",
        fields={
            "name": text(description="Its field in metadata.", pattern=_FACT_NAME, max_length=63),
            "type": choice(description="What it is, and so how it is written.", options=FACT_TYPES),
            "label": text(description="What people read before its value.", pattern=r"^\S", max_length=LONGEST_LABEL),
            "required": flag(description="Whether a request must state it."),
        },
    )
    fact["properties"] |= {
        "currency": text(description="The fixed currency of an amount.", pattern=_CURRENCY, max_length=3),
        "currency_from": text(
            description="The fact that holds the currency of an amount.", pattern=_FACT_NAME, max_length=63
        ),
        "values": array(
            description="The only codes or currencies accepted.",
            items=text(description="One code.", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64),
            min_items=1,
            max_items=MOST_VALUES,
        ),
    }
    return fact


AREA = Area(
    name="metadata_boundary",
    owner_group="privacy",
    title=_TITLE,
    description=(
        "Decides which metadata an attempt may carry: a JSON Schema that lists the allowed fields, how "
        "large and how deep it may be, keys that are never accepted, and which content detectors are "
        "switched off. Request bodies, health data, free text, connector payloads, secrets and insurance "
        "identifiers stay out."
    ),
    schema=document(
        title=_TITLE,
        fields={
            # The only open object of all documents: it is itself a JSON Schema, which the boundary package checks.
            "schema": {
                "type": "object",
                "description": "JSON Schema of the allowed metadata. What it does not list is refused.",
            },
            "max_bytes": integer(
                description="Largest metadata object, in bytes of canonical JSON.", minimum=2, maximum=32_768
            ),
            "max_depth": integer(description="Deepest nesting of the metadata object.", minimum=1, maximum=8),
            "forbidden_keys": array(
                description="Keys refused at any depth, besides the built-in ones.",
                items=text(description="Key name.", pattern=r"^\S+$", max_length=64),
                min_items=0,
                max_items=200,
            ),
            "detectors": closed_object(
                description="Content detectors (names, numbers, secrets, free text).",
                fields={
                    "disabled": array(
                        description="Detectors that are switched off for this contract.",
                        items=text(description="Detector name.", pattern=SLUG_PATTERN, max_length=64),
                        min_items=0,
                        max_items=50,
                    ),
                },
            ),
        },
        # Left out: no facts. Contracts that were approved before have none.
        optional={
            "facts": array(
                description="Typed facts in metadata, beside the schema. Reviewers see them, policies read them.",
                items=_fact(),
                min_items=0,
                max_items=MOST_FACTS,
            ),
        },
    ),
    default={
        "schema": {"type": "object", "additionalProperties": False, "properties": {}},
        "max_bytes": 4_096,
        "max_depth": 4,
        "forbidden_keys": [],
        "detectors": {"disabled": []},
    },
)
