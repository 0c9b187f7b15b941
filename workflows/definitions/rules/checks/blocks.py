"""Blocks of format 2 are nested properly: no jump in or out, JOIN inside only, TERMINAL outside only, and all end."""

from collections.abc import Iterator

from workflows.definitions.rules.blocks import MAX_NESTING, BlockReading, Crossing, body_place
from workflows.definitions.rules.document import JOIN, TERMINAL
from workflows.definitions.rules.findings import DefinitionFinding, did_you_mean, nearest, quoted
from workflows.kinds.shapes import MAX_ITEMS


def block_targets_exist(reading: BlockReading) -> Iterator[DefinitionFinding]:
    for step_id in reading.steps:
        for outcome, target in reading.targets(step_id).items():
            if target not in {TERMINAL, JOIN} and target not in reading.raw_steps:
                suggestion = nearest(target, {*reading.raw_steps, TERMINAL, JOIN} - {step_id})
                message = (
                    f"The id of a step, '{TERMINAL}' or '{JOIN}' is needed here; {quoted(target)} is none of them."
                )
                pointer = reading.pointer("steps", step_id, "transitions", outcome)
                yield DefinitionFinding("targets_exist", pointer, message + did_you_mean(suggestion), suggestion)
    for body in reading.blocks.bodies:
        if not body.is_root and body.start not in reading.raw_steps:
            suggestion = nearest(body.start, reading.raw_steps)
            message = f"The id of a step is needed here; {quoted(body.start)} is none.{did_you_mean(suggestion)}"
            pointer = reading.pointer("steps", body.block, *body_place(body))
            yield DefinitionFinding("targets_exist", pointer, message, suggestion)


def steps_entered(reading: BlockReading) -> Iterator[DefinitionFinding]:
    if reading.start not in reading.steps:
        return  # nothing could be reached; start_step_exists has said why
    for step_id in reading.steps:
        if step_id not in reading.entered:
            message = "No path from start_step leads here. Point a transition at this step, or remove it."
            yield DefinitionFinding("no_unreachable_steps", reading.pointer("steps", step_id), message)


def block_structure(reading: BlockReading) -> Iterator[DefinitionFinding]:
    """Every step belongs to one body, and no transition leads from one body to another."""
    for crossing in reading.blocks.crossings:
        message, suggestion = _crossing_words(crossing)
        pointer = reading.pointer("steps", crossing.source, *crossing.way)
        yield DefinitionFinding("block_structure", pointer, message, suggestion)


def blocks_bounded(reading: BlockReading) -> Iterator[DefinitionFinding]:
    for body in reading.blocks.bodies:
        pointer = reading.pointer("steps", body.block) if not body.is_root else ""
        if not body.is_root and body.block in {one.block for one in reading.blocks.inside(body.block)}:
            message = "This block lies inside itself. Let its bodies begin at steps of their own."
            yield DefinitionFinding("block_structure", pointer, message)
        elif reading.blocks.depth(body) > MAX_NESTING:
            message = f"Blocks are nested at most {MAX_NESTING} deep. Move the inner ones to a workflow of their own."
            yield DefinitionFinding("blocks_bounded", pointer, message)


def join_inside(reading: BlockReading) -> Iterator[DefinitionFinding]:
    for step_id, outcome, body in reading.blocks.ends(JOIN):
        if body.is_root:
            message = f"'{JOIN}' ends a branch or a body, and this step is in none. Lead to a step or to '{TERMINAL}'."
            pointer = reading.pointer("steps", step_id, "transitions", outcome)
            yield DefinitionFinding("join_inside", pointer, message, TERMINAL)


def terminal_outside(reading: BlockReading) -> Iterator[DefinitionFinding]:
    for step_id, outcome, body in reading.blocks.ends(TERMINAL):
        if body.is_root:
            continue
        kind = reading.kind(step_id)
        if kind is not None and kind.is_final:
            message = (
                f"A step of kind {kind.name} ends the run, so it cannot be in {body.words}. Put it after the block."
            )
            pointer = reading.pointer("steps", step_id, "kind")
            yield DefinitionFinding("terminal_outside", pointer, message)
        else:
            message = f"'{TERMINAL}' ends the run and cannot be used in {body.words}. End it with '{JOIN}'."
            pointer = reading.pointer("steps", step_id, "transitions", outcome)
            yield DefinitionFinding("terminal_outside", pointer, message, JOIN)


def bodies_reach_join(reading: BlockReading) -> Iterator[DefinitionFinding]:
    for body in reading.blocks.bodies:
        if body.is_root or body.start not in reading.steps or any(reading.blocks.joins(body)):
            continue
        if reading.blocks.of.get(body.start) == body:
            message = f"No path through {body.words} leads to '{JOIN}'. Let its last step lead there."
            yield DefinitionFinding(
                "bodies_reach_join", reading.pointer("steps", body.block, *body_place(body)), message, JOIN
            )


def terminal_reachable(reading: BlockReading) -> Iterator[DefinitionFinding]:
    if reading.start in reading.steps and not reading.ends_well:
        message = f"No path from start_step ends in '{TERMINAL}'. Let the last step lead to it."
        yield DefinitionFinding("terminal_reachable", "/steps", message, TERMINAL)


def joins_fit(reading: BlockReading) -> Iterator[DefinitionFinding]:
    """`at_least` asks for no more than there is."""
    for step_id, _, kind in reading.of_kind():
        params = reading.params(step_id)
        join, branches = params.get("join"), params.get("branches")
        needed = join.get("at_least") if isinstance(join, dict) else None
        most = len(branches) if isinstance(branches, dict) else MAX_ITEMS
        if kind.block and isinstance(needed, int) and not isinstance(needed, bool) and needed > most:
            what = f"There are {most} branches" if isinstance(branches, dict) else f"A list has at most {most} items"
            message = f"{what}, so {needed} can never complete. Lower at_least."
            pointer = reading.param_pointer(step_id, "join", "at_least")
            yield DefinitionFinding("joins_fit", pointer, message, str(most))


def _crossing_words(crossing: Crossing) -> tuple[str, str]:
    here, there = crossing.here, crossing.there
    if crossing.way[:1] == ("params",):
        return f"This step belongs to {there.words} already. Let {here.words} begin at a step of its own.", ""
    if here.is_root:
        return f"This leads into {there.words}. Lead to its block, or to a step outside of it.", there.block
    return f"This leads out of {here.words} into {there.words}. End it with '{JOIN}'.", JOIN
