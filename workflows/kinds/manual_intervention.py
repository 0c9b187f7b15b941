"""Stops the branch until a person of the tier says whether it goes on."""

from governance.boundary.rules.forms import EMPTY_FORM
from workflows.kinds.base import Evaluator, Json, StepAnswer, StepKind
from workflows.kinds.human_task import ANSWERED, TIER, TITLE
from workflows.kinds.shapes import CODE, REFERENCE, closed

RESUME, HALT = "resume", "halt"


def _prepare(params: Json, context: Json, evaluator: Evaluator) -> Json:
    return {
        "title": params["title"],
        "facts": {"reason": params["reason_code"]},
        "form": EMPTY_FORM,
        "outcomes": [RESUME, HALT],
        "approvals": 1,
    }


def _answer(params: Json, payload: Json) -> StepAnswer:
    known = payload["outcome"] in (RESUME, HALT)
    # An outcome that there is not makes an output that does not fit: the run halts, as for any answer that drifted.
    return StepAnswer(
        outcome=f"on_{payload['outcome']}", output={"decided_by": payload["reviewer"]} if known else {"unknown": True}
    )


KIND = StepKind(
    name="manual_intervention",
    title="Manual intervention",
    description="Waits until a person of the tier lets the run go on or halts it.",
    params_schema=closed({"tier": TIER, "title": TITLE, "reason_code": CODE}),
    outcomes=("on_resume", "on_halt"),
    output_schema=closed({"decided_by": REFERENCE}),
    effect="none",
    endpoint="POST /reviews/{id}/decide",
    completion=ANSWERED,
    default_timeout_seconds=7 * 24 * 3600,
    human_tier="tier",
    texts=("title",),
    reason_codes={"reason_code": "halt"},
    formats=(2,),
    prepare=_prepare,
    answer=_answer,
)
