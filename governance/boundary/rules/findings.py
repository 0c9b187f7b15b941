"""Findings of the boundary: a pointer and a rule. They never contain the submitted value."""

from collections.abc import Iterable
from dataclasses import dataclass

# A hostile request can break thousands of rules. Findings are stored with the decision, so their number is limited.
MAX_FINDINGS = 50

MESSAGES = {
    "forbidden_key": "This key names content that records must not hold.",
    "email": "Looks like an e-mail address.",
    "phone": "Looks like a phone number.",
    "national_id": "Looks like a national identity or tax number.",
    "insurance_id": "Looks like a health insurance identifier.",
    "medical_record_number": "Looks like a medical record number.",
    "card_number": "Looks like a payment card number.",
    "date_of_birth": "Looks like a date of birth or an age.",
    "person_name": "Looks like the name of a person.",
    "free_text": "Reads like free text; use a code or a reference.",
    "base64_blob": "Looks like encoded content; send a reference and a hash.",
    "data_url": "Carries content inside a data: URL.",
    "secret_token": "Looks like a secret.",
    "bearer_token": "Looks like a bearer credential.",
    "private_key": "Looks like private key material.",
    "not_in_schema": "The contract's metadata schema does not list this.",
    "schema_type": "The type differs from the contract's metadata schema.",
    "schema_required": "The contract's metadata schema requires this.",
    "schema_value": "Not one of the values in the contract's metadata schema.",
    "schema_limit": "Outside the limits in the contract's metadata schema.",
    "schema_format": "Not in the format the contract's metadata schema asks for.",
    "schema_mismatch": "Does not fit the contract's metadata schema.",
    "fact_required": "The contract declares this fact, and the request does not state it.",
    "fact_amount": "An amount is a decimal string with as many decimals as its currency has, such as 149.00.",
    "fact_currency": "Not one of the contract's currencies (ISO 4217, three capital letters).",
    "fact_count": "A count is a whole number from 0 on.",
    "fact_date": "A date is written as YYYY-MM-DD.",
    "fact_code": "Not one of the contract's codes: letters, digits, dot, hyphen and underscore, at most 64.",
    "too_large": "Larger than the boundary allows.",
    "too_deep": "Nested deeper than the boundary allows.",
    "not_json": "Not a JSON value.",
    "number_range": "Not a number every JSON reader keeps exactly; send it as a string.",
    "control_character": "Contains control characters or broken Unicode.",
}


@dataclass(frozen=True, slots=True, order=True)
class BoundaryFinding:
    """One refusal: an RFC 6901 pointer and the stable name of the rule."""

    pointer: str
    rule: str

    @property
    def message(self) -> str:
        return MESSAGES[self.rule]


def ordered(found: Iterable[BoundaryFinding]) -> tuple[BoundaryFinding, ...]:
    """Sorted and unique, so that key order in the request cannot change a recorded decision (law 3)."""
    return tuple(sorted(set(found))[:MAX_FINDINGS])
