"""Which event types the key of a module may publish (S4 4.5). Pure."""

from collections.abc import Mapping, Set

from workflows.kinds.base import StepKind
from workflows.kinds.call_events import ANSWERS, named_call
from workflows.modules.rules.terms import STARTS


def module_may_publish(event_type: str, *, module: str, publishes: Set[str], kinds: Mapping[str, StepKind]) -> bool:
    """The answers of its own operations, and what it declared; of a step kind's answers only those of its own kinds."""
    call = named_call(event_type)
    if call is not None:
        return call.module == module and call.word in ANSWERS
    answered = {
        kind.module
        for kind in kinds.values()
        if event_type in {event.name for event in (kind.completion, kind.failure) if event}
    }
    return event_type in publishes and (not answered or module in answered)


def unbound_may_publish(event_type: str) -> bool:
    """Where keys have to be bound: an unbound key still begins runs, and answers nothing."""
    return event_type in STARTS
