"""Which fields an evaluator refused, with rule and remedy. The answer to the caller, `/decision` and `/explain` all say
this. Made from names and rules, so no submitted value can appear."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from governance.boundary.rules import BoundaryFinding
from governance.boundary.rules.findings import RULES
from reasoncodes.base.errors import FieldError

# Field of the envelope or the action: where a caller writes it, and how to send it. Holdpoint fills in the others.
_PLACES: Final[Mapping[str, tuple[str, str]]] = {
    "patient_context_ref": ("/patient_context_ref", "Send it in the body."),
    "idempotency_key": ("/headers/Idempotency-Key", "Send the header `Idempotency-Key`."),
    "request_trace_id": ("/headers/traceparent", "Send the header `traceparent` or `X-Request-ID`."),
    "runtime_mode": ("/runtime_mode", "Send one that the contract allows; trust-infrastructure can add one."),
    "connector": ("/action/connector", "Send the contract's adapter, or leave it out."),
    "risk_tier": ("/action/risk_tier", "Send a tier that the contract allows."),
    "slug": ("/workflow_slug", "Check the address of the request."),
    "version": ("/contract_version", "Check the address of the request."),
}
_OURS: Final = "Holdpoint fills it in; ask an operator."
_WORDS: Final[Mapping[str, str]] = {
    "missing": "is required by this contract's envelope and missing",
    "malformed": "does not have the format of this contract's envelope",
    "mismatched": "differs from what this contract declares",
    "not_applicable": "is declared not applicable by this contract",
}


def field_errors(inputs: Mapping[str, Any]) -> Iterator[FieldError]:
    """The fields that these inputs of an evaluator name."""
    for place in inputs.get("findings", ()):
        # A rule of a program that is newer than this one has no words here.
        if place["rule"] in RULES:
            found = BoundaryFinding(place["pointer"], place["rule"])
            yield FieldError(found.pointer, found.message, rule=found.rule, remedy=found.remedy)
    for rule, words in _WORDS.items():
        for name in inputs.get(rule) or ():
            pointer, remedy = _PLACES.get(name, (f"/envelope/{name}", _OURS))
            remedy = "Leave it out." if rule == "not_applicable" else remedy
            message = f"`{name}` {words}; {remedy[0].lower()}{remedy[1:]}"
            yield FieldError(pointer, message, rule=rule, remedy=remedy)
