"""The shape of an intake body, and its fingerprint. Pure: bytes in, a checked body or all problems out."""

from dataclasses import dataclass
from typing import Any

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


# In this order; the first one is the route, the others are fields of the body.
PARTS = ("route", *sorted(BODY_SCHEMA["properties"]))
DIGITS = 16


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
        """The parts as they are stored: enough digits of each to name what differs."""
        return "".join(digest[:DIGITS] for digest in self.parts.values())

    def differing(self, other: str | dict[str, str]) -> list[str]:
        """From what is stored of another: `short`, or (older records) the whole parts."""
        if isinstance(other, str):
            other = {name: other[index * DIGITS :] for index, name in enumerate(PARTS)}
        return [name for name, digest in self.parts.items() if other.get(name, "")[:DIGITS] != digest[:DIGITS]]


def body_problems(body: Any) -> list[FieldError]:
    """Every place, by pointer; never a submitted value or an unknown field's name."""
    found = []
    for error in _validator.iter_errors(body):
        rule = str(error.schema_path[-1]) if error.schema_path else "shape"
        pointer = "".join(f"/{part}" for part in error.instance_path) or "/"
        found.append(FieldError(pointer, WORDS.get(rule, "is not valid"), rule=rule))
    return found


def action_digest(action: dict[str, Any]) -> str:
    """What an approval is bound to: exactly the declared action."""
    return canonical_sha256(action)
