"""Whether, how often and when a failed execution is retried without a person, and what a person may replay."""

from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.areas.attempt_state_machine import FINAL_STATES
from governance.contracts.rules.documents.schema_parts import (
    SLUG_PATTERN,
    array,
    choice,
    closed_object,
    document,
    integer,
    text,
)

_TITLE = "Retry and replay policy"
_DAY = 86_400

AREA = Area(
    name="retry_and_replay",
    owner_group="reliability-engineering",
    title=_TITLE,
    description=(
        "Decides whether a failed execution may be tried again automatically, how often, after which waits "
        "and for how long, and from which final states a replay (a new attempt with all checks) may be "
        "requested. Automatic retries exist only where the effect proves them safe and the failure "
        "is declared retryable; this document can tighten that and never loosen it."
    ),
    schema=document(
        title=_TITLE,
        fields={
            "automatic_retries": choice(
                description=("never, or when_safe: effect none or idempotent and a failure declared retryable."),
                options=("never", "when_safe"),
            ),
            "max_attempts": integer(
                description="Executions in all, the first one included; 1 when automatic_retries is never.",
                minimum=1,
                maximum=10,
            ),
            "backoff_seconds": array(
                description="Wait before the first, second, … retry, in seconds; the last value repeats.",
                items=integer(description="Wait in seconds.", minimum=1, maximum=_DAY),
                min_items=1,
                max_items=10,
                unique=False,
            ),
            "jitter_fraction": {
                "type": "number",
                "description": (
                    "Up to this part of a wait is added at random, so that retries do not arrive together."
                ),
                "minimum": 0,
                "maximum": 1,
            },
            "window_seconds": integer(
                description="Time after the first execution in which the last retry must have started.",
                minimum=1,
                maximum=7 * _DAY,
            ),
            "replay": closed_object(
                description="When a replay of an old attempt may be requested.",
                fields={
                    "eligible_states": array(
                        description="Final states from which a replay may be requested; empty means none.",
                        items=choice(description="Final state of the old attempt.", options=FINAL_STATES),
                        min_items=0,
                        max_items=len(FINAL_STATES),
                    ),
                    "requires_role": text(
                        description="Role a person needs to replay; null means anyone who may create attempts.",
                        pattern=SLUG_PATTERN,
                        max_length=64,
                        nullable=True,
                    ),
                },
            ),
            "retry_after_seconds": integer(
                description="Retry-After given to a caller who should come back later.",
                minimum=1,
                maximum=_DAY,
            ),
        },
    ),
    default={
        "automatic_retries": "never",
        "max_attempts": 1,
        "backoff_seconds": [5, 30, 120, 600],
        "jitter_fraction": 0.2,
        "window_seconds": 3_600,
        "replay": {"eligible_states": ["preflight-denied"], "requires_role": None},
        "retry_after_seconds": 30,
    },
)
