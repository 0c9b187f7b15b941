"""Computes the decision: runs all evaluators in their fixed order and guards each of them, so that `evaluate` never
raises."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from governance.boundary.rules import FIRST
from governance.enforcement.rules.case import Case, load_snapshots
from governance.enforcement.rules.environment import Environment
from governance.enforcement.rules.evaluators import EVALUATE, metadata_boundary
from governance.enforcement.rules.inspection import NOT_INSPECTED, NOTHING_FOUND, Inspection, as_stored, inspect_request
from governance.enforcement.rules.names import ENVIRONMENT_SHAPE, REQUEST_SHAPE
from governance.enforcement.rules.precedence import winning
from governance.enforcement.rules.shape import facts_problems, request_problems
from governance.enforcement.rules.verdict import Approval, Decision, EvaluatorResult, Verdict, deny

Stopwatch = Callable[[], float]
T = TypeVar("T")

# A check that takes longer is a denial. Without a limit, a pattern or rule that computes too much would keep a web
# thread busy and still be obeyed.
SLOWEST_SECONDS: Final = 0.25
_BOUNDARY: Final = "metadata_boundary"


def evaluate(request: Mapping[str, Any], environment: Environment, *, stopwatch: Stopwatch | None = None) -> Decision:
    """Decides about a request. Never raises: what cannot be read or judged is a denial with a reason code.

    `stopwatch` gives seconds of a monotonic clock. Without it, as in a replay, only the failures that are recorded in
    the facts count.
    """
    malformed = _malformed(request, environment)
    if malformed:
        return _decision(malformed, failures={})
    run = _Run(failures=dict(environment.facts.get("failures", {})), stopwatch=stopwatch)
    case, boundary = _boundary(run, request, environment)
    # All of them, also after a denial: the record shows everything that was wrong, not only the first reason.
    results = [boundary if name == _BOUNDARY else run.result(name, judge, case) for name, judge in EVALUATE]
    return _decision(results, failures=run.failures)


def _malformed(request: Any, environment: Environment) -> list[EvaluatorResult]:
    found = []
    if problems := request_problems(request):
        found.append(deny(REQUEST_SHAPE, "invalid_input", problems=problems))
    if problems := facts_problems(environment.facts):
        found.append(deny(ENVIRONMENT_SHAPE, "enforcement_exception", problems=problems))
    return found


class _Run:
    """Runs evaluators, and records those that raise or take too long. One that has a recorded failure is not run."""

    def __init__(self, *, failures: dict[str, str], stopwatch: Stopwatch | None) -> None:
        self.failures = failures
        self._stopwatch = stopwatch

    def guarded(self, name: str, work: Callable[[Case], T], case: Case) -> T | None:
        """The result of the work, or None and a recorded failure."""
        # In a replay this is a failure of the original decision. Running the evaluator now could succeed, and the
        # replay would differ.
        if name in self.failures:
            return None
        stopwatch = self._stopwatch
        try:
            start = stopwatch() if stopwatch else 0.0
            outcome = work(case)
            if stopwatch and stopwatch() - start > SLOWEST_SECONDS:
                self.failures[name] = "timeout"
                return None
        except Exception as error:
            # Any error of an evaluator must be a denial: raised further it would be a 500 without a record. Only the
            # name of its class is kept, because the message could quote a submitted value.
            self.failures[name] = f"raised:{type(error).__name__}"
            return None
        return outcome

    def result(self, name: str, judge: Callable[[Case], EvaluatorResult], case: Case) -> EvaluatorResult:
        return self.guarded(name, judge, case) or _failure(name, self.failures[name])


def _boundary(run: _Run, request: Mapping[str, Any], environment: Environment) -> tuple[Case, EvaluatorResult]:
    """Inspects the request and gives the boundary's result. Runs before the first evaluator; the result takes its
    place in the order later."""
    # First, because `envelope` and `policy` must not judge a value that will not be stored, and must know if the
    # inspection failed.
    unseen = Case(
        request=request,
        metadata=as_stored(dict(request.get("metadata", ()))),
        facts=environment.facts,
        snapshots=load_snapshots(environment),
        inspection=NOT_INSPECTED,
    )
    seen = run.guarded(_BOUNDARY, _inspected, unseen)
    return seen or (unseen, _failure(_BOUNDARY, run.failures[_BOUNDARY]))


def _inspected(case: Case) -> tuple[Case, EvaluatorResult]:
    contract = case.contract
    policy = contract.boundary if contract else None
    # Facts from before editions existed name none.
    edition = case.facts.get("boundary_edition", FIRST)
    findings = inspect_request(case.request, metadata=case.metadata, policy=policy, edition=edition)
    inspection = Inspection(findings) if findings else NOTHING_FOUND
    seen = Case(case.request, case.metadata, case.facts, case.snapshots, inspection)
    return seen, metadata_boundary.evaluate(seen)


def _failure(name: str, failure: str) -> EvaluatorResult:
    kind, _, error = failure.partition(":")
    inputs = {"failure": kind, "error": error} if error else {"failure": kind}
    return deny(name, "enforcement_exception", **inputs)


def _decision(results: list[EvaluatorResult], *, failures: dict[str, str]) -> Decision:
    decisive, rule_inputs = winning(results), results[-1].inputs
    return Decision(
        verdict=decisive.verdict,
        reason_code=decisive.reason_code,
        results=tuple(results),
        approval=_approval(decisive),
        rule_id=rule_inputs.get("rule"),
        retry_after=decisive.inputs.get("retry_after"),
        failures=failures,
    )


def _approval(decisive: EvaluatorResult) -> Approval | None:
    if decisive.verdict is not Verdict.NEEDS_APPROVAL:
        return None
    inputs = decisive.inputs
    return Approval.of(
        tier=inputs.get("tier"),
        approvals_required=inputs["approvals_required"],
        expires_in_seconds=inputs["expires_in_seconds"],
        buckets=inputs.get("buckets", ()),
    )
