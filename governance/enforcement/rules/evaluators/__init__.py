"""The nine evaluators, one per file, in the order of `EVALUATORS`."""

from collections.abc import Callable
from typing import Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.evaluators import (
    authorization,
    concurrency,
    contract_open,
    envelope,
    metadata_boundary,
    policy,
    region,
    shutdown,
    throttle,
)
from governance.enforcement.rules.verdict import EvaluatorResult

EVALUATE: Final[tuple[tuple[str, Callable[[Case], EvaluatorResult]], ...]] = (
    ("contract_open", contract_open.evaluate),
    ("shutdown", shutdown.evaluate),
    ("envelope", envelope.evaluate),
    ("metadata_boundary", metadata_boundary.evaluate),
    ("region", region.evaluate),
    ("authorization", authorization.evaluate),
    ("throttle", throttle.evaluate),
    ("concurrency", concurrency.evaluate),
    ("policy", policy.evaluate),
)
