"""The six starter workflows that ship (S4 section 7), as documents that an organization clones and changes."""

import json
from functools import cache
from importlib.resources import files

from workflows.kinds.base import Json

NAMES: tuple[str, ...] = (
    "ai_only",
    "ai_plus_clinician",
    "ai_with_confidence_escalation",
    "ai_plus_clinician_plus_sa_qa_sample",
    "clinician_only",
    "ai_escalation_plus_sa_sample",
)


def starters() -> dict[str, Json]:
    """Name: document, in S4's order. Fresh copies that the caller may change."""
    return {name: definition_starter(name) for name in NAMES}


def definition_starter(name: str) -> Json:
    """Raises KeyError for a name that is none of the six."""
    if name not in NAMES:
        raise KeyError("there is no starter workflow of that name")
    document: Json = json.loads(_text(name))
    return document


@cache
def _text(name: str) -> str:
    return files("workflows.definitions.rules.starters").joinpath(f"{name}.json").read_text("utf-8")
