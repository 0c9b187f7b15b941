"""The shape, scope and lifetime of idempotency keys, and what a repeated request gets."""

from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.schema_parts import (
    array,
    choice,
    closed_object,
    document,
    flag,
    integer,
    text,
)

KEY_HEADER = "Idempotency-Key"
REQUIRED_HEADERS = (KEY_HEADER, "traceparent", "X-Request-ID")
# Character classes for a whole key; use fullmatch. `token` allows keys such as
# `sn:incident:update:<instance>:<hash>`.
KEY_CHARSETS = {
    "hex": r"[0-9a-fA-F]+",
    "token": r"[A-Za-z0-9._:/~-]+",
    "visible_ascii": r"[!-~]+",
}
ON_REPEAT = ("recognise", "hold", "refuse")
TIER_PATTERN = r"^[a-z][a-z0-9_-]*$"
_TITLE = "Idempotency key policy"
_DAY = 86_400

AREA = Area(
    name="idempotency_key_policy",
    owner_group="platform-architecture",
    title=_TITLE,
    description=(
        "Decides whether a repeated request is recognised as the same one (dedupe) or recorded as a new "
        "attempt each time (timeline), which keys are accepted, within which scope a key is unique, how "
        "long it is remembered, and what a caller gets for a repeated, reused or expired key."
    ),
    schema=document(
        title=_TITLE,
        fields={
            "mode": choice(
                description=(
                    "dedupe: a known key never opens a second attempt. timeline: every call is a new attempt."
                ),
                options=("dedupe", "timeline"),
            ),
            "required": flag(description="Whether a request without a key is refused."),
            "key": closed_object(
                description="Shape of an acceptable key.",
                fields={
                    "min_length": integer(description="Shortest accepted key, in characters.", minimum=1, maximum=255),
                    "max_length": integer(description="Longest accepted key, in characters.", minimum=1, maximum=255),
                    "charset": choice(description="Characters a key may consist of.", options=tuple(KEY_CHARSETS)),
                },
            ),
            "scope": choice(
                description=("Where a key is unique: in the whole organization, this contract, or for the caller."),
                options=("tenant", "contract", "caller"),
            ),
            "ttl_seconds": integer(
                description="How long a key can be replayed, in seconds.", minimum=60, maximum=365 * _DAY
            ),
            "on_expired": choice(
                description=("What an expired key gets: gone answers 410 and runs nothing, new opens a new attempt."),
                options=("gone", "new"),
            ),
            "replay": choice(
                description=("What the same request with the same key gets: the first response, byte for byte."),
                options=("stored_response",),
            ),
            "conflict": choice(
                description="What another request with the same key gets: a refusal.", options=("refuse",)
            ),
            "required_headers": array(
                description="Request headers without which a request is refused.",
                items=choice(description="Header name.", options=REQUIRED_HEADERS),
                min_items=0,
                max_items=len(REQUIRED_HEADERS),
            ),
        },
        optional={
            "effect_identity": closed_object(
                description=(
                    "What the same side effect (connector, operation, target, payload hash) gets when it is asked for "
                    "again under another key, while a key is remembered. Without it: it is not recognised."
                ),
                fields={
                    "on_repeat": choice(
                        description=(
                            "recognise: rules can use effect.asked_before. hold: somebody of the tier must approve. "
                            "refuse: it is denied."
                        ),
                        options=ON_REPEAT,
                    ),
                    "tier": text(
                        description="Who must approve a repetition, for hold; otherwise null.",
                        pattern=TIER_PATTERN,
                        max_length=63,
                        nullable=True,
                    ),
                },
            ),
        },
    ),
    default={
        "mode": "dedupe",
        "required": True,
        "key": {"min_length": 8, "max_length": 200, "charset": "token"},
        "scope": "tenant",
        "ttl_seconds": _DAY,
        "on_expired": "gone",
        "replay": "stored_response",
        "conflict": "refuse",
        "required_headers": [KEY_HEADER],
    },
)
