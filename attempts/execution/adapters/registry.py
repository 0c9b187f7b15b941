"""The adapters by name, and the effect that counts for a contract and its adapter."""

from attempts.execution.adapters.base import Adapter
from attempts.execution.adapters.email import EmailAdapter
from attempts.execution.adapters.event import EventAdapter
from attempts.execution.adapters.external import ExternalAdapter
from attempts.execution.adapters.http import HttpAdapter
from attempts.execution.adapters.slack import SlackAdapter
from governance.contracts.states import STRICTNESS

_ALL: tuple[Adapter, ...] = (EventAdapter(), HttpAdapter(), EmailAdapter(), SlackAdapter(), ExternalAdapter())
ADAPTERS: dict[str, Adapter] = {adapter.name: adapter for adapter in _ALL}


def adapter_for(name: str) -> Adapter:
    """The adapter of this name; KeyError if there is none. The attempt is then not executed."""
    return ADAPTERS[name]


def effect_in_force(*, adapter: str, effect: str) -> str:
    """The stricter effect of what the contract declares and what the adapter declares."""
    # An unknown adapter or effect counts as `once`, the strictest: a wrong `idempotent` would permit retries.
    known = ADAPTERS.get(adapter)
    declared = (effect, known.effect if known else "once")
    return max(declared, key=lambda name: STRICTNESS.get(name, 2)) if set(declared) <= set(STRICTNESS) else "once"
