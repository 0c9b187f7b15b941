"""Which metadata an attempt may have. Only the outer shape is checked here; `governance.boundary.rules` checks the
schema inside."""

from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.schema_parts import (
    SLUG_PATTERN,
    array,
    closed_object,
    document,
    integer,
    text,
)

_TITLE = "Metadata-only boundary"

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
    ),
    default={
        "schema": {"type": "object", "additionalProperties": False, "properties": {}},
        "max_bytes": 4_096,
        "max_depth": 4,
        "forbidden_keys": [],
        "detectors": {"disabled": []},
    },
)
