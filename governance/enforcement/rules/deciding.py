"""The decision: all evaluators in their fixed order, none of which can make it raise."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

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

SLOWEST_SECONDS: Final = 0.25
_BOUNDARY: Final = "metadata_boundary"


def evaluate(request: Mapping[str, Any], environment: Environment, *, stopwatch: Stopwatch | None = None) -> Decision:
    """Decides. Never raises: whatever cannot be read or judged is a denial with a reason code.

    `stopwatch` gives seconds of a monotonic clock. Without it, as in a replay, only the failures that the facts
    record count.
    """
    malformed = _malformed(request, environment)
    if malformed:
        return _decision(malformed, failures={})
    run = _Run(failures=dict(environment.facts.get("failures", {})), stopwatch=stopwatch)
    case, boundary = _boundary(run, request, environment)
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
    """Guards each piece of work: an evaluator that failed once has failed, and is not asked again."""

    def __init__(self, *, failures: dict[str, str], stopwatch: Stopwatch | None) -> None:
        self.failures = failures
        self._stopwatch = stopwatch

    def guarded(self, name: str, work: Callable[[Case], T], case: Case) -> T | None:
        """The outcome of the work, or nothing and a failure on record. The name of the error's class is kept, its
        message is not: it could quote a value."""
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
            self.failures[name] = f"raised:{type(error).__name__}"
            return None
        return outcome

    def result(self, name: str, judge: Callable[[Case], EvaluatorResult], case: Case) -> EvaluatorResult:
        return self.guarded(name, judge, case) or _failure(name, self.failures[name])


def _boundary(run: _Run, request: Mapping[str, Any], environment: Environment) -> tuple[Case, EvaluatorResult]:
    """Looks at the request before the first evaluator does and reports in its place: `envelope` and `policy` must
    not judge a value that will not be stored, and must know if nobody could say."""
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
    findings = inspect_request(case.request, metadata=case.metadata, policy=policy)
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
