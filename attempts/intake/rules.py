"""The schema of an intake body, the fingerprint of a request and the digest of its action. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

import jsonschema_rs

from attempts.lifecycle.states import RuntimeMode
from governance.ledger.rules.entry import canonical_sha256
from reasoncodes.base.errors import FieldError

TEXT = {"type": "string", "minLength": 1, "maxLength": 200}
BODY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["action"],
    "properties": {
        "patient_context_ref": TEXT,
        "runtime_mode": {"enum": [mode.value for mode in RuntimeMode]},
        "action": {
            "type": "object",
            "additionalProperties": False,
            "required": ["operation", "target_ref", "risk_tier"],
            "properties": {
                "connector": {"type": "string", "minLength": 1, "maxLength": 64},
                "operation": {"type": "string", "minLength": 1, "maxLength": 128},
                "target_ref": TEXT,
                "risk_tier": {"enum": ["low", "medium", "high"]},
                "payload_ref": TEXT,
                "payload_sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                "fields": {
                    "type": "array",
                    "maxItems": 100,
                    "items": {"type": "string", "minLength": 1, "maxLength": 128},
                },
            },
        },
        "metadata": {"type": "object"},
    },
}
_validator = jsonschema_rs.Draft202012Validator(BODY_SCHEMA)
WORDS = {
    "required": "lacks a required field",
    "additionalProperties": "has a field that is not known",
    "enum": "is not one of the allowed values",
    "type": "does not have the expected type",
    "pattern": "does not have the expected format",
    "minLength": "may not be empty",
    "maxLength": "is too long",
    "maxItems": "has too many items",
}


# The order is part of the stored form: records keep the parts as one string, by position. First the route, then the
# fields of the body.
PARTS = ("route", *sorted(BODY_SCHEMA["properties"]))
DIGITS = 16  # per part and record; enough to name what differs, since equality is decided by the whole hash


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One hash for equality, one per part so that a conflict can name what differs."""

    value: str
    parts: dict[str, str]

    @staticmethod
    def of(*, route: str, body: dict[str, Any]) -> "Fingerprint":
        parts = {name: canonical_sha256(route if name == "route" else body.get(name)) for name in PARTS}
        return Fingerprint(canonical_sha256(parts), parts)

    @property
    def short(self) -> str:
        """The parts as they are stored."""
        return "".join(digest[:DIGITS] for digest in self.parts.values())

    def differing(self, other: str | dict[str, str]) -> list[str]:
        """The names of the parts that differ from a stored fingerprint: `short`, or whole parts in older records."""
        if isinstance(other, str):
            other = {name: other[index * DIGITS :] for index, name in enumerate(PARTS)}
        return [name for name, digest in self.parts.items() if other.get(name, "")[:DIGITS] != digest[:DIGITS]]


def body_problems(body: Any) -> list[FieldError]:
    """All problems, each with its JSON pointer."""
    # Never a submitted value or the name of an unknown field: the answer would repeat text of the caller.
    found = []
    for error in _validator.iter_errors(body):
        rule = str(error.schema_path[-1]) if error.schema_path else "shape"
        pointer = "".join(f"/{part}" for part in error.instance_path) or "/"
        found.append(FieldError(pointer, WORDS.get(rule, "is not valid"), rule=rule))
    return found


LONGEST_WAIT = 300


def refusal_backoff(base: int, count: int, attempt_id: UUID) -> int:
    """Seconds until a refused caller may ask again: what the refusal says the first time, then twice as long each time,
    with up to a fifth of jitter, so that many who were refused together do not come back together."""
    if count <= 1:
        return base
    wait = min(max(base, 1) << min(count - 1, 10), max(base, LONGEST_WAIT))
    # From a hash instead of a random number: the same wait comes out for whoever computes it again.
    part = int.from_bytes(sha256(f"{attempt_id}:{count}".encode()).digest()[:4], "big") / 2**32
    return wait + int(wait * part / 5)


def action_digest(action: Mapping[str, Any], *, facts: Mapping[str, Any]) -> str:
    """The hash that an approval is bound to: exactly the declared action, with the facts that the reviewer sees."""
    # Without facts it is the action alone, as for every attempt from before there were facts.
    return canonical_sha256({**action, "facts": facts} if facts else action)
