"""Checks the profile file and reports all problems at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs

from governance.regions.rules.file_schema import FILE_SCHEMA, REGION_SCHEMA
from governance.regions.rules.terms import RESIDENCY_LEVELS

SEED_CODES = ("US", "AE", "SA", "KW", "NG", "KE", "RW", "GH", "EU")


@cache
def _validators() -> tuple[jsonschema_rs.Draft202012Validator, jsonschema_rs.Draft202012Validator]:
    return jsonschema_rs.Draft202012Validator(FILE_SCHEMA), jsonschema_rs.Draft202012Validator(REGION_SCHEMA)


def file_problems(data: Any) -> list[str]:
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
