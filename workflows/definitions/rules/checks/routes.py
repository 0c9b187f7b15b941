"""The graph is sound: a start, no transition to nowhere, no unreachable step, no cycle, and a final step in reach."""

from collections.abc import Iterator

from workflows.definitions.rules.document import DEFAULT_WORKFLOW_TIMEOUT, TERMINAL
from workflows.definitions.rules.findings import DefinitionFinding, did_you_mean, is_plain, nearest, quoted
from workflows.definitions.rules.reading import Reading, integer_or_none


def start_step_exists(reading: Reading) -> Iterator[DefinitionFinding]:
    start = reading.document.get("start_step")
    if isinstance(start, str) and start not in reading.raw_steps:
        suggestion = nearest(start, reading.raw_steps)
        message = f"start_step names {quoted(start)}, and there is no such step.{did_you_mean(suggestion)}"
        yield DefinitionFinding(
            "start_step_exists", "/start_step", message + ("" if suggestion else _ADVICE), suggestion
        )


def targets_exist(reading: Reading) -> Iterator[DefinitionFinding]:
    for step_id in reading.steps:
        for outcome, target in reading.targets(step_id).items():
            if target != TERMINAL and target not in reading.raw_steps:
                suggestion = nearest(target, {*reading.raw_steps, TERMINAL} - {step_id})
                message = f"'{TERMINAL}' or the id of a step is needed here; {quoted(target)} is neither."
                pointer = reading.pointer("steps", step_id, "transitions", outcome)
                yield DefinitionFinding("targets_exist", pointer, message + did_you_mean(suggestion), suggestion)


def no_unreachable_steps(reading: Reading) -> Iterator[DefinitionFinding]:
    if reading.start not in reading.steps:
        return  # nothing could be reached; start_step_exists has said why
    for step_id in reading.steps:
        if step_id not in reading.graph.reachable:
            message = "No path from start_step leads here. Point a transition at this step, or remove it."
            yield DefinitionFinding("no_unreachable_steps", reading.pointer("steps", step_id), message)


def no_cycles(reading: Reading) -> Iterator[DefinitionFinding]:
    for circle in reading.graph.cycles:
        names = [edge.source for edge in circle] + [circle[0].source]
        shown = " → ".join(name if is_plain(name) else "…" for name in names[:12]) + (" …" if len(names) > 12 else "")
        message = f"These steps lead back to themselves: {shown}. Workflows only go forward: change this transition."
        pointer = reading.pointer("steps", circle[-1].source, "transitions", circle[-1].outcome)
        yield DefinitionFinding("no_cycles", pointer, message)


def emit_final_reachable(reading: Reading) -> Iterator[DefinitionFinding]:
    finals = [step_id for step_id, _, kind in reading.of_kind() if kind.is_final]
    names = " or ".join(kind.name for kind in reading.kinds.values() if kind.is_final) or "emit_final"
    if not finals:
        message = f"No step ends the workflow well. Add a step of kind {names} that leads to {TERMINAL}."
        yield DefinitionFinding("emit_final_reachable", "/steps", message, names)
    elif reading.start in reading.steps and not reading.graph.reachable & set(finals):
        message = f"No path from start_step leads to a step of kind {names}. Point a transition at this step."
        yield DefinitionFinding("emit_final_reachable", reading.pointer("steps", finals[0]), message)
    elif reading.start in reading.steps and not reading.ends_well:
        message = f"No path from start_step ends in {TERMINAL}. Let a step of kind {names} lead to it."
        yield DefinitionFinding("emit_final_reachable", reading.pointer("steps", finals[0]), message, TERMINAL)


def timeout_within_workflow(reading: Reading) -> Iterator[DefinitionFinding]:
    outer = integer_or_none(reading.document.get("workflow_timeout_seconds", DEFAULT_WORKFLOW_TIMEOUT))
    for step_id, step in reading.steps.items():
        own = integer_or_none(step.get("timeout_seconds"))
        if outer is not None and own is not None and own > outer:
            message = f"The step may take longer than the whole workflow ({outer} seconds). Lower it, or raise that."
            pointer = reading.pointer("steps", step_id, "timeout_seconds")
            yield DefinitionFinding("timeout_within_workflow", pointer, message, str(outer))


_ADVICE = " Name one of the steps."
