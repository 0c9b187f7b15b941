"""Asks the consent service whether the consents that the workflow needs are given."""

from workflows.kinds.base import EventType, Json, StepAnswer, StepKind
from workflows.kinds.shapes import BOOLEAN, CODE, FAILURE, REFERENCE, array_shape, closed

_TYPES = array_shape(CODE, at_least=1, at_most=20, unique=True)
_RESULT = closed({"granted": BOOLEAN, "missing_types": array_shape(CODE, at_most=20)})


def _payload(params: Json, context: Json) -> Json:
    return {"types": list(params["types"]), "patient_id": context.get("patient_id")}


def _answer(params: Json, payload: Json) -> StepAnswer:
    output = {"granted": payload["granted"], "missing_types": payload["missing_types"]}
    return StepAnswer(outcome="on_pass" if payload["granted"] else "on_fail", output=output)


KIND = StepKind(
    name="gate_on_consent",
    pack="clinical",
    title="Consent gate",
    description="Asks the consent service whether every listed consent is on record. Nothing is changed.",
    params_schema=closed({"types": _TYPES}),
    outcomes=("on_pass", "on_fail"),
    output_schema=_RESULT,
    effect="none",
    module="consent",
    endpoint="POST /consents/check",
    request=EventType(
        name="consent.check.requested",
        direction="out",
        description="Asks the consent service which of these consents are missing.",
        schema=closed({"types": _TYPES, "patient_id": REFERENCE}),
    ),
    completion=EventType(
        name="consent.check.completed",
        direction="in",
        description="The consents are on record, or these are missing.",
        schema=_RESULT,
    ),
    failure=EventType(
        name="consent.check.failed", direction="in", description="The consent service could not say.", schema=FAILURE
    ),
    default_timeout_seconds=60,
    payload=_payload,
    answer=_answer,
)
