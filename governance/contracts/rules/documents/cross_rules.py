"""Rules between the documents of one contract, and between them and the contract's effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from governance.contracts.rules.documents.area import DocumentProblem
from governance.contracts.rules.documents.reading import dig, texts_in, whole

EFFECTS = ("none", "idempotent", "once")
Problems = Iterator[DocumentProblem]
_KEY = "idempotency_key_policy"
_RETRY = "retry_and_replay"
# Final states that an attempt reaches only after something may have been sent.
_RAN_STATES = frozenset({"completed", "failed-quarantined"})


def cross_problems(documents: Mapping[str, Any], *, effect: str) -> Problems:
    """All problems that concern more than one document. Pointers begin with the area's name."""
    if effect not in EFFECTS:
        yield DocumentProblem("", "effect_unknown", f"the contract's effect must be one of: {', '.join(EFFECTS)}")
    # An unknown effect is treated as the strictest one.
    strict = effect not in ("none", "idempotent")
    if strict:
        yield from _once_rules(documents)
    if effect != "none":
        yield from _dedupe_needs_key(documents)
    yield from _key_agreement(documents)
    yield from _key_outlives_work(documents)


def _once_rules(documents: Mapping[str, Any]) -> Problems:
    """Effect `once` is never executed again without a person (constitution, law 4)."""
    if dig(documents.get(_RETRY), "automatic_retries") == "when_safe":
        message = "must be never: the contract's effect is once, and nothing proves a second execution safe"
        yield DocumentProblem(f"/{_RETRY}/automatic_retries", "retries_need_safe_effect", message)
    for state in sorted(texts_in(dig(documents.get(_RETRY), "replay", "eligible_states")) & _RAN_STATES):
        message = f"must not contain {state}: with effect once only the quarantine case may authorise a new attempt"
        yield DocumentProblem(f"/{_RETRY}/replay/eligible_states", "replay_needs_safe_effect", message)


def _dedupe_needs_key(documents: Mapping[str, Any]) -> Problems:
    policy = documents.get(_KEY)
    if dig(policy, "mode") == "dedupe" and dig(policy, "required") is False:
        message = "must be true: without a key a repeated request cannot be recognised, and the effect is not none"
        yield DocumentProblem(f"/{_KEY}/required", "dedupe_needs_key", message)


def _key_agreement(documents: Mapping[str, Any]) -> Problems:
    """Two documents say whether a key is required; they must agree."""
    fields, required = (
        dig(documents.get("attempt_identity_envelope"), "required"),
        dig(documents.get(_KEY), "required"),
    )
    if (
        isinstance(fields, list)
        and isinstance(required, bool)
        and required is not ("idempotency_key" in texts_in(fields))
    ):
        message = f"must contain idempotency_key exactly when {_KEY} has required true"
        yield DocumentProblem("/attempt_identity_envelope/required", "key_requirement_mismatch", message)


def _key_outlives_work(documents: Mapping[str, Any]) -> Problems:
    """A key must live longer than its attempt can wait or retry. Otherwise the same request could start a second
    attempt while the first one is under way."""
    ttl = whole(dig(documents.get(_KEY), "ttl_seconds"))
    if ttl is None or dig(documents.get(_KEY), "mode") != "dedupe":
        return
    retry, locks = documents.get(_RETRY), documents.get("concurrency_and_locks")
    window = whole(dig(retry, "window_seconds")) if dig(retry, "automatic_retries") == "when_safe" else None
    queue = whole(dig(locks, "queue_timeout_seconds")) if dig(locks, "when_busy") == "queue" else None
    for length, name in (
        (window, f"{_RETRY}.window_seconds"),
        (queue, "concurrency_and_locks.queue_timeout_seconds"),
    ):
        if length is not None and ttl < length:
            yield DocumentProblem(f"/{_KEY}/ttl_seconds", "key_expires_before_work", f"must be at least {name}")
