"""The JSON Schema of the profile file. All objects are closed, so that a misspelt key is found and not ignored."""

from __future__ import annotations

from typing import Any

from governance.regions.rules.terms import DURING_RETENTION, RESIDENCY_LEVELS

# The file repeats these lists for its readers. The program's copy decides: a file must not extend the values that it
# is checked against.
ENUMS: dict[str, list[str]] = {
    "confidence": ["high", "medium", "low"],
    "residency": list(RESIDENCY_LEVELS),
    "failover_mode": ["same_country_only", "same_bloc_only", "listed_regions"],
    "deletion_right": ["yes", "limited", "no"],
    "during_retention": list(DURING_RETENTION),
    "law_kind": ["health", "data_protection", "cyber", "sector"],
    "law_status": ["in_force", "partly_applicable", "pending", "proposed"],
    "clock_from": ["controller", "processor", "operator"],
}
MERGE_RULE_KEYS = (
    "when",
    "retention",
    "residency",
    "failover",
    "export",
    "deletion",
    "breach",
    "blocked_destinations",
)

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string", "maxLength": 2_000}
_FLAG: Schema = {"type": "boolean"}
_TEXTS: Schema = {"type": "array", "items": _TEXT, "maxItems": 100}
_CODE: Schema = {"type": "string", "pattern": "^[A-Z]{2}$"}
_MONTH: Schema = {"type": "string", "pattern": "^20[0-9]{2}-(0[1-9]|1[0-2])$"}
_CONFIDENCE: Schema = {"enum": ENUMS["confidence"]}


def _closed(**fields: Schema) -> Schema:
    # A trailing underscore lets Python keywords (`from`) be field names.
    named = {name.rstrip("_"): schema for name, schema in fields.items()}
    return {"type": "object", "additionalProperties": False, "required": list(named), "properties": named}


def _count(*, most: int, least: int = 1, nullable: bool = False) -> Schema:
    return {"type": ["integer", "null"] if nullable else "integer", "minimum": least, "maximum": most}


def _enum(name: str) -> Schema:
    return {"enum": ENUMS[name]}


_LAW = _closed(name=_TEXT, citation=_TEXT, kind=_enum("law_kind"), status=_enum("law_status"), note=_TEXT)
_CLOCK = _closed(
    from_=_enum("clock_from"),
    to=_TEXT,
    hours=_count(most=8_760, nullable=True),
    text=_TEXT,
    basis=_TEXT,
    confidence=_CONFIDENCE,
)
_RETENTION = _closed(
    statutory_min_years=_count(most=100, nullable=True),
    default_years=_count(most=100),
    clock={"const": "last_linked_activity"},
    # Purging needs a signed order (regions.md); a file that says otherwise is refused.
    auto_purge={"const": False},
    basis=_TEXT,
    note=_TEXT,
    confidence=_CONFIDENCE,
)
_RESIDENCY = _closed(
    legal_position=_enum("residency"),
    default=_enum("residency"),
    basis=_TEXT,
    note=_TEXT,
    confidence=_CONFIDENCE,
)
_FAILOVER = _closed(
    allowed_regions={"type": "array", "items": _CODE, "uniqueItems": True, "maxItems": 50},
    mode=_enum("failover_mode"),
    cross_border_requires=_TEXTS,
    confidence=_CONFIDENCE,
)
_TRANSFER = _closed(
    mechanisms=_TEXTS,
    blocked_destinations={
        "type": "array",
        "items": {"type": "string", "pattern": "^([A-Z]{2}|[*])$"},
        "uniqueItems": True,
        "maxItems": 300,
    },
    basis=_TEXT,
    confidence=_CONFIDENCE,
)
_EXPORT = _closed(
    statutory_days=_count(most=366, nullable=True),
    statutory_text=_TEXT,
    default_days=_count(most=366),
    extension_days=_count(least=0, most=366),
    formats={"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 10},
    basis=_TEXT,
    confidence=_CONFIDENCE,
)
_DELETION = _closed(
    right=_enum("deletion_right"),
    statutory_days=_count(most=366, nullable=True),
    default_days=_count(most=366),
    method={"const": "crypto_shred_reference"},
    during_retention=_enum("during_retention"),
    exceptions=_TEXTS,
    basis=_TEXT,
    confidence=_CONFIDENCE,
)
# A legal hold always takes precedence. A file that says otherwise is refused.
_HOLD = _closed(
    blocks_deletion={"const": True},
    blocks_purge={"const": True},
    release_needs_two_people={"const": True},
    basis=_TEXT,
    confidence=_CONFIDENCE,
)

REGION_SCHEMA = _closed(
    code=_CODE,
    name=_TEXT,
    seed_region=_FLAG,
    laws={"type": "array", "items": _LAW, "maxItems": 100},
    regulators=_TEXTS,
    retention=_RETENTION,
    residency=_RESIDENCY,
    failover=_FAILOVER,
    cross_border_transfer=_TRANSFER,
    export=_EXPORT,
    deletion=_DELETION,
    legal_hold=_HOLD,
    breach_notification=_closed(
        default_hours=_count(most=8_760), clocks={"type": "array", "items": _CLOCK, "maxItems": 50}
    ),
    confidence=_CONFIDENCE,
    uncertain=_TEXTS,
    sources=_TEXTS,
    last_reviewed=_MONTH,
)

# The entries of `regions` are checked one by one, so that one bad entry does not hide what is wrong with
# the others.
FILE_SCHEMA = _closed(
    schema_version={"type": "string", "pattern": "^1[.][0-9]+$"},
    title=_TEXT,
    disclaimer={"type": "string", "minLength": 1, "maxLength": 2_000},
    scope=_TEXT,
    last_reviewed=_MONTH,
    conservative_rule=_TEXT,
    on_unknown_region={"const": "deny"},
    merge_rule=_closed(**dict.fromkeys(MERGE_RULE_KEYS, _TEXT)),
    enums={"const": ENUMS},
    regions={"type": "array", "maxItems": 300},
)
