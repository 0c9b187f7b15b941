"""How the simulated modules behave: how fast they are, how often they fail, repeat an answer or answer too late."""

from dataclasses import dataclass

from workflows.kinds.registry import kinds

MODULES = ("consent", "clinical-api", "ai-review", "human-review")
CONFIDENCES = ("low", "high", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Rates are shares from 0 to 1. With the same seed, the same request gets the same answer."""

    latency_ms: float = 50.0
    jitter: float = 0.5  # latencies are spread evenly over ± this share of the mean
    failure_rate: float = 0.0
    retryable_share: float = 0.5  # of the failures that can say so
    duplicate_rate: float = 0.0
    reorder_rate: float = 0.0
    late_rate: float = 0.0
    late_seconds: float = 90.0
    confidence: str = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("failure_rate", "retryable_share", "duplicate_rate", "reorder_rate", "late_rate", "jitter"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1")
        if self.confidence not in CONFIDENCES:
            raise ValueError(f"confidence must be one of {', '.join(CONFIDENCES)}")
        if self.latency_ms < 0 or self.late_seconds < 0:
            raise ValueError("times cannot be negative")


def requests_of(modules: frozenset[str]) -> tuple[str, ...]:
    """The event types of requests to these modules, from the step kinds."""
    found = {kind.request.name for kind in kinds().values() if kind.request and kind.module in modules}
    return tuple(sorted(found))


def modules_named(text: str) -> frozenset[str]:
    """The modules in a list with commas; an empty text means all."""
    names = frozenset(name.strip() for name in text.split(",") if name.strip()) or frozenset(MODULES)
    unknown = names - frozenset(MODULES)
    if unknown:
        raise ValueError(f"no such module: {', '.join(sorted(unknown))}; there are {', '.join(MODULES)}")
    return names
