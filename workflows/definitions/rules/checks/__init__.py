"""The rules of a publishable definition, in the order in which people read their findings."""

from collections.abc import Callable, Iterator

from workflows.definitions.rules.checks import (
    blocks,
    conditions,
    expressions,
    kinds,
    names,
    routes,
    schemas,
    shape,
    texts,
    vocabulary,
)
from workflows.definitions.rules.findings import DefinitionFinding
from workflows.definitions.rules.reading import Reading
from workflows.definitions.rules.reads import TypedReading

Rule = Callable[[Reading], Iterator[DefinitionFinding]]
TypedRule = Callable[[TypedReading], Iterator[DefinitionFinding]]

# These read one place at a time, and hold for drafts of any size.
LOCAL: tuple[Rule, ...] = (
    shape.document_shape,
    shape.step_ids_valid,
    shape.integers_written_plainly,
    shape.expression_once,
    texts.text_boundary,
    texts.key_boundary,
)
# S4 3.5 in its order, and what Holdpoint adds.
WHOLE: tuple[Rule, ...] = (
    routes.start_step_exists,
    routes.targets_exist,
    routes.no_unreachable_steps,
    routes.no_cycles,
    conditions.condition_parses,
    vocabulary.halt_reason_exists,
    vocabulary.review_tier_exists,
    routes.emit_final_reachable,
    routes.timeout_within_workflow,
    kinds.kind_exists,
    kinds.params_valid,
    kinds.outcomes_complete,
    kinds.final_targets_terminal,
    kinds.effect_forbids_retries,
    conditions.condition_paths_known,
    conditions.condition_types_fit,
    conditions.template_paths_known,
)
# The same for format 2.
LOCAL_2: tuple[TypedRule, ...] = (
    shape.document_shape,
    names.step_words_free,
    shape.integers_written_plainly,
    shape.expression_once,
    names.texts_inspected,
    texts.key_boundary,
    schemas.input_bounded,
)
WHOLE_2: tuple[TypedRule, ...] = (
    routes.start_step_exists,
    blocks.block_targets_exist,
    blocks.steps_entered,
    routes.no_cycles,
    blocks.block_structure,
    blocks.blocks_bounded,
    blocks.join_inside,
    blocks.terminal_outside,
    blocks.bodies_reach_join,
    blocks.terminal_reachable,
    blocks.joins_fit,
    expressions.expression_parses,
    expressions.templates_closed,
    vocabulary.halt_reason_exists,
    vocabulary.review_tier_exists,
    routes.timeout_within_workflow,
    kinds.kind_exists,
    kinds.params_valid,
    kinds.outcomes_complete,
    kinds.final_targets_terminal,
    schemas.retries_allowed,
    schemas.params_bounded,
    schemas.tasks_fit,
    schemas.reviewers_exist,
    expressions.expression_paths_known,
    expressions.expression_types_fit,
)
