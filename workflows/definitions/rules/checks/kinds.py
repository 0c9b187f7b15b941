"""Each step fits its kind: the kind exists, the params fit its schema, every outcome has a transition."""

from collections.abc import Iterator

from workflows.definitions.rules.findings import DefinitionFinding, did_you_mean, is_plain, nearest, quoted
from workflows.definitions.rules.reading import Reading, integer_or_none
from workflows.kinds.base import StepKind, params_problems


def kind_exists(reading: Reading) -> Iterator[DefinitionFinding]:
    usable = [name for name, kind in reading.kinds.items() if reading.format in kind.formats]
    for step_id, step in reading.steps.items():
        name = step.get("kind")
        if isinstance(name, str) and name in reading.kinds and name not in usable:
            formats = " and ".join(map(str, reading.kinds[name].formats))
            message = f'Steps of kind {name} are for documents of format {formats}: add "format": 2 to the document.'
            yield DefinitionFinding("kind_exists", reading.pointer("steps", step_id, "kind"), message)
        elif isinstance(name, str) and name not in usable:
            suggestion = nearest(name, usable)
            advice = did_you_mean(suggestion) or f" Use one of: {', '.join(usable)}."
            message = f"There is no step kind {quoted(name)}.{advice}"
            yield DefinitionFinding("kind_exists", reading.pointer("steps", step_id, "kind"), message, suggestion)


def params_valid(reading: Reading) -> Iterator[DefinitionFinding]:
    """By the kind's own schema."""
    for step_id, step, kind in reading.of_kind():
        if "params" in step and not isinstance(step["params"], dict):
            continue
        base = reading.pointer("steps", step_id, "params")
        for problem in params_problems(kind, reading.params(step_id), base=base):
            last = problem.pointer.removeprefix(base).rpartition("/")[2]
            suggestion = nearest(last, kind.params_schema["properties"]) if problem.rule == "unknown_field" else ""
            in_place = reading.param_pointer(step_id, "expr")
            pointer = in_place if problem.pointer == f"{base}/expr" else problem.pointer
            what = f"'{last}'" if is_plain(last) else "This"
            remove = " Remove it." if problem.rule == "unknown_field" and not suggestion else did_you_mean(suggestion)
            message = f"{what} {problem.message}.{remove}"
            yield DefinitionFinding("params_valid", pointer, message, suggestion)


def outcomes_complete(reading: Reading) -> Iterator[DefinitionFinding]:
    """Every outcome of the kind has a transition, and there is no transition for anything else."""
    for step_id, _, kind in reading.of_kind():
        given = reading.steps[step_id].get("transitions", {})
        if not isinstance(given, dict):
            continue
        at = reading.pointer("steps", step_id, "transitions")
        for outcome in kind.outcomes:
            if outcome not in given:
                message = f"Add a transition for the outcome '{outcome}' of {kind.name}: the id of the next step."
                yield DefinitionFinding("outcomes_complete", at, message, outcome)
        for outcome in given:
            if outcome not in kind.outcomes:
                yield _unknown_outcome(reading, step_id, outcome, kind)


def final_targets_terminal(reading: Reading) -> Iterator[DefinitionFinding]:
    for step_id, _, kind in reading.of_kind():
        targets = reading.targets(step_id)
        for outcome, only in kind.must_target.items():
            if outcome in targets and targets[outcome] != only:
                message = f"A step of kind {kind.name} ends the workflow: '{outcome}' must lead to {only}."
                pointer = reading.pointer("steps", step_id, "transitions", outcome)
                yield DefinitionFinding("final_targets_terminal", pointer, message, only)


def effect_forbids_retries(reading: Reading) -> Iterator[DefinitionFinding]:
    """Law 4: a step of effect `once` must not be retried."""
    for step_id, step, kind in reading.of_kind():
        # What a call of a module does is known once its operation was looked up, and judged there.
        if kind.effect == "once" and kind.bind is None and (integer_or_none(step.get("max_retries")) or 0) > 0:
            message = f"{kind.name} has effect once and is never retried automatically. Set max_retries to 0."
            yield DefinitionFinding(
                "effect_forbids_retries", reading.pointer("steps", step_id, "max_retries"), message, "0"
            )


def _unknown_outcome(reading: Reading, step_id: str, outcome: str, kind: StepKind) -> DefinitionFinding:
    pointer = reading.pointer("steps", step_id, "transitions", outcome)
    if kind.is_terminal:
        return DefinitionFinding(
            "outcomes_complete", pointer, f"{kind.name} ends the workflow. Remove its transitions."
        )
    missing = [name for name in kind.outcomes if name not in reading.targets(step_id)]
    suggestion = nearest(outcome, missing or kind.outcomes)
    advice = did_you_mean(suggestion) or f" Its outcomes are: {', '.join(kind.outcomes)}."
    message = f"{kind.name} has no outcome {quoted(outcome)}.{advice}"
    return DefinitionFinding("outcomes_complete", pointer, message, suggestion)
