"""Findings of the boundary: a pointer and a rule. They never contain the submitted value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

# A hostile request can break thousands of rules. Findings are stored with the decision, so their number is limited.
MAX_FINDINGS = 50

_KEEP = "Keep the content in your own system and send a reference or a code."
_OWN_ID = "Send your own identifier, for example a UUID; if this is one, give it a prefix."

# Rule: what is the case with the field, as the end of a sentence that begins with its name; and what helps.
RULES: Final[Mapping[str, tuple[str, str]]] = {
    "forbidden_key": ("names content that records must not hold", _KEEP),
    "email": ("looks like an e-mail address", _OWN_ID),
    "phone": ("looks like a phone number", _OWN_ID),
    "national_id": ("looks like a national identity or tax number", _OWN_ID),
    "insurance_id": ("looks like a health insurance identifier", _OWN_ID),
    "medical_record_number": ("looks like a medical record number", _OWN_ID),
    "card_number": ("looks like a payment card number", _OWN_ID),
    "date_of_birth": ("looks like a date of birth or an age", _KEEP),
    "person_name": ("looks like the name of a person", _OWN_ID),
    "free_text": ("reads like free text", "Send a code or a reference."),
    "clinical_phrase": ("contains a clinical phrase", "Send a code of your own or a reference to the finding."),
    "base64_blob": ("looks like encoded content", "Send a reference and a SHA-256."),
    "embedded_document": (
        "contains a document (JSON, XML or a message)",
        "Send its fields as metadata of their own, or a reference and a SHA-256.",
    ),
    "data_url": ("carries content inside a data: URL", "Send a reference and a SHA-256."),
    "secret_token": (
        "looks like a secret",
        "Take it out; replace the secret if it was logged elsewhere.",
    ),
    "bearer_token": (
        "looks like a bearer credential",
        "Take it out; replace the credential if it was logged elsewhere.",
    ),
    "private_key": ("looks like private key material", "Take it out, and replace the key."),
    "not_in_schema": ("is not in this contract's allow-list", "The privacy owner can add it."),
    "schema_type": (
        "has another type than this contract's metadata schema says",
        "Send the type of the schema; the privacy owner can change it.",
    ),
    "schema_required": ("is required by this contract's metadata schema", "Send it."),
    "schema_value": (
        "is not one of the values in this contract's metadata schema",
        "Send one of them; the privacy owner can add a value.",
    ),
    "schema_limit": ("is outside the limits of this contract's metadata schema", "The privacy owner can change them."),
    "schema_format": ("is not in the format that this contract's metadata schema asks for", "Send that format."),
    "schema_mismatch": ("does not fit this contract's metadata schema", "The privacy owner can show the schema."),
    "fact_required": ("is a fact that the contract declares, and the request does not state it", "Send it."),
    "fact_amount": ("is not an amount with as many decimals as its currency has", 'Send a string such as "149.00".'),
    "fact_currency": (
        "is not one of the contract's currencies",
        "Send an ISO 4217 code in capitals; the privacy owner can add one.",
    ),
    "fact_count": ("is not a count", "Send a whole number from 0 on."),
    "fact_date": ("is not a date", "Send it as YYYY-MM-DD."),
    "fact_code": (
        "is not one of the contract's codes",
        "Send one of them: letters, digits, dot, hyphen and underscore, at most 64; the privacy owner can add one.",
    ),
    "too_large": ("is larger than the boundary allows", "Send less; the privacy owner sets the size."),
    "too_deep": (
        "is nested deeper than the boundary allows",
        "Send it flatter; the privacy owner sets the depth.",
    ),
    "not_json": ("is not a JSON value", "Send JSON."),
    "number_range": ("is not a number that every JSON reader keeps exactly", "Send it as a string."),
    "control_character": ("contains control characters or broken Unicode", "Take them out."),
    "not_inspected": ("could not be inspected", "Send the request again."),
}
MESSAGES: Final[Mapping[str, str]] = {rule: f"{what[0].upper()}{what[1:]}." for rule, (what, _) in RULES.items()}


@dataclass(frozen=True, slots=True, order=True)
class BoundaryFinding:
    """One refusal: an RFC 6901 pointer and the stable name of the rule."""

    pointer: str
    rule: str

    @property
    def field(self) -> str:
        """The field as its sender calls it: the last name in the pointer, with the position in a list. A pointer holds
        no value (`rules/pointers.py`), so this does not either."""
        parts = self.pointer.replace("~1", "/").replace("~0", "~").split("/")
        named = next((place for place in range(len(parts) - 1, 0, -1) if not parts[place].isdigit()), 0)
        return "/".join(parts[named:]) or "/"

    @property
    def message(self) -> str:
        """Field, what is wrong with it, and the remedy, in one sentence."""
        what, remedy = RULES[self.rule]
        return f"`{self.field}` {what}; {remedy[0].lower()}{remedy[1:]}"

    @property
    def remedy(self) -> str:
        return RULES[self.rule][1]


def ordered(found: Iterable[BoundaryFinding]) -> tuple[BoundaryFinding, ...]:
    """Sorted and unique, so that key order in the request cannot change a recorded decision (law 3)."""
    return tuple(sorted(set(found))[:MAX_FINDINGS])
