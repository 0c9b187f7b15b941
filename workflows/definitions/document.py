"""A definition's document as typed values: the engine and the validator read these, never raw JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TERMINAL = "TERMINAL"
DEFAULT_WORKFLOW_TIMEOUT = 30 * 24 * 3600
BACKOFFS = ("exponential", "linear", "fixed")


@dataclass(frozen=True, slots=True)
class Step:
    id: str
    kind: str
    params: dict[str, Any]
    transitions: dict[str, str]
    timeout_seconds: int | None
    max_retries: int
    retry_backoff: str
    retry_delay_seconds: int


@dataclass(frozen=True, slots=True)
class Definition:
    """A document that passed validation."""

    id: str
    name: str
    default_mode: str
    workflow_timeout_seconds: int
    start_step: str
    steps: dict[str, Step]

    def step(self, step_id: str) -> Step:
        return self.steps[step_id]


def read_definition(document: Mapping[str, Any], *, definition_id: str) -> Definition:
    """From stored JSON. `definition_id` enters `sample()`: the same case under the same definition decides the same."""
    return Definition(
        id=definition_id,
        name=str(document.get("name", "")),
        default_mode=document.get("default_mode", "active"),
        workflow_timeout_seconds=document.get("workflow_timeout_seconds", DEFAULT_WORKFLOW_TIMEOUT),
        start_step=document["start_step"],
        steps={step_id: _step(step_id, step) for step_id, step in document["steps"].items()},
    )


def _step(step_id: str, step: Mapping[str, Any]) -> Step:
    params = dict(step.get("params", {}))
    if "expr" in step:  # S4 writes a condition's expression beside its params
        params["expr"] = step["expr"]
    return Step(
        id=step_id,
        kind=step["kind"],
        params=params,
        transitions=dict(step.get("transitions", {})),
        timeout_seconds=step.get("timeout_seconds"),
        max_retries=step.get("max_retries", 0),
        retry_backoff=step.get("retry_backoff", "exponential"),
        retry_delay_seconds=step.get("retry_delay_seconds", 5),
    )
