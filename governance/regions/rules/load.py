"""Reads the profile file that ships with the program. A file with any problem is refused as a whole."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

import rfc8785

from governance.regions.rules.checks import file_problems
from governance.regions.rules.errors import ProfilesInvalidError
from governance.regions.rules.profile import ProfileSet, profile_from

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
    problems = file_problems(data)
    if problems:
        raise ProfilesInvalidError(problems)
    return ProfileSet(
        version=f"{data['schema_version']}+{data['last_reviewed']}",
        sha256=hashlib.sha256(rfc8785.dumps(data)).hexdigest(),
        disclaimer=data["disclaimer"],
        profiles=tuple(profile_from(region, schema_version=data["schema_version"]) for region in data["regions"]),
    )
