"""The profile file that ships with the program: its JSON Schema, everything that can be wrong with it, and loading it.

A broken file stops the program. All objects are closed, so that a misspelt key is found and not ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import rfc8785

from governance.regions.rules.profile import (
    DURING_RETENTION,
    RESIDENCY_LEVELS,
    ProfileSet,
    ProfilesInvalidError,
    profile_from,
)

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

SEED_CODES = ("US", "AE", "SA", "KW", "NG", "KE", "RW", "GH", "EU")


@cache
def _validators() -> tuple[jsonschema_rs.Draft202012Validator, jsonschema_rs.Draft202012Validator]:
    return jsonschema_rs.Draft202012Validator(FILE_SCHEMA), jsonschema_rs.Draft202012Validator(REGION_SCHEMA)


def _file_problems(data: Any) -> list[str]:
    """All problems of a parsed profile file, each with its pointer. Empty if the file can be used."""
    whole_file, one_region = _validators()
    problems = [*_shape(whole_file, data, at=""), *_floats(data, at="")]
    regions = data.get("regions") if isinstance(data, dict) else None
    entries = regions if isinstance(regions, list) else []
    sound = []
    for index, entry in enumerate(entries):
        broken = list(_shape(one_region, entry, at=f"/regions/{index}"))
        problems.extend(broken)
        if not broken:
            sound.append(entry)
    known = frozenset(_codes(entries))
    problems.extend(_set_problems(entries))
    for entry in sound:
        problems.extend(f"{entry['code']}: {text}" for text in _region_problems(entry, known=known))
    return problems


def _shape(validator: jsonschema_rs.Draft202012Validator, value: Any, *, at: str) -> Iterator[str]:
    for error in validator.iter_errors(value):
        place = at + "".join(f"/{part}" for part in error.instance_path)
        yield f"{place or '/'} breaks the rule {'/'.join(map(str, error.schema_path))}"


def _floats(value: Any, *, at: str) -> Iterator[str]:
    """Numbers with a decimal point. JSON Schema accepts 10.0 as an integer; adding years to a date does not."""
    if isinstance(value, float):
        yield f"{at} must be a whole number without a decimal point"
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from _floats(member, at=f"{at}/{key}")


def _codes(entries: list[Any]) -> list[str]:
    codes = [entry.get("code") for entry in entries if isinstance(entry, dict)]
    return [code for code in codes if isinstance(code, str)]


def _set_problems(entries: list[Any]) -> Iterator[str]:
    for code, times in Counter(_codes(entries)).items():
        if times > 1:
            yield f"{code} appears {times} times"
    seeds = {entry.get("code") for entry in entries if isinstance(entry, dict) and entry.get("seed_region") is True}
    for code in SEED_CODES:
        if code not in seeds:
            yield f"seed region {code} is missing"
    for code in sorted(item for item in seeds if isinstance(item, str) and item not in SEED_CODES):
        yield f"{code} is marked as a seed region and is none"


def _region_problems(region: dict[str, Any], *, known: frozenset[str]) -> Iterator[str]:
    retention, residency = region["retention"], region["residency"]
    if (retention["statutory_min_years"] or 0) > retention["default_years"]:
        yield "retention.default_years is below statutory_min_years"
    if RESIDENCY_LEVELS.index(residency["default"]) > RESIDENCY_LEVELS.index(residency["legal_position"]):
        yield "residency.default is looser than legal_position"
    for part in ("export", "deletion"):
        if region[part]["statutory_days"] is not None and region[part]["default_days"] > region[part]["statutory_days"]:
            yield f"{part}.default_days is above statutory_days"
    hours = [clock["hours"] for clock in region["breach_notification"]["clocks"] if clock["hours"] is not None]
    if hours and region["breach_notification"]["default_hours"] > min(hours):
        yield "breach_notification.default_hours is above its shortest clock"
    yield from _failover_problems(region, known=known)


def _failover_problems(region: dict[str, Any], *, known: frozenset[str]) -> Iterator[str]:
    allowed = set(region["failover"]["allowed_regions"])
    for code in sorted(allowed - known):
        yield f"failover.allowed_regions names {code}, which has no profile"
    if region["failover"]["mode"] != "listed_regions" and allowed - {region["code"]}:
        yield "failover.allowed_regions goes beyond its mode"
    if region["code"] in region["cross_border_transfer"]["blocked_destinations"]:
        yield "cross_border_transfer.blocked_destinations names the region itself"


PROFILE_FILE = Path(__file__).with_name("profiles.json")


@cache
def load_profiles() -> ProfileSet:
    """The shipped profiles, read and checked once per process."""
    return parse_profiles(PROFILE_FILE.read_text(encoding="utf-8"))


def parse_profiles(text: str) -> ProfileSet:
    """The checked profiles. Raises ProfilesInvalidError with everything that is wrong."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise ProfilesInvalidError(["the file is not JSON"]) from None
    problems = _file_problems(data)
    if problems:
        raise ProfilesInvalidError(problems)
    return ProfileSet(
        version=f"{data['schema_version']}+{data['last_reviewed']}",
        sha256=hashlib.sha256(rfc8785.dumps(data)).hexdigest(),
        disclaimer=data["disclaimer"],
        profiles=tuple(profile_from(region, schema_version=data["schema_version"]) for region in data["regions"]),
    )
