"""Rules about one document that a JSON Schema cannot express. Each yields its problems and accepts broken shapes,
which the schema reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from governance.boundary.rules import declaration_problems
from governance.contracts.rules.documents.area import DocumentProblem
from governance.contracts.rules.documents.areas.attempt_identity_envelope import FIELDS_NEVER_OPTIONAL
from governance.contracts.rules.documents.areas.failure_quarantine import DEFAULT_TRIGGERS, TRIGGERS_OF_UNKNOWN_OUTCOME
from governance.contracts.rules.documents.areas.idempotency_key_policy import KEY_HEADER
from governance.contracts.rules.documents.areas.throttles_and_misuse import DIMENSIONS
from governance.contracts.rules.documents.json_safety import pointer_to
from governance.contracts.rules.documents.reading import dig, objects, texts_in, whole
from governance.regions.rules import load_profiles

Problems = Iterator[DocumentProblem]


def _envelope_rules(document: Any) -> Problems:
    required = dig(document, "required")
    if not isinstance(required, list):
        return
    for field in FIELDS_NEVER_OPTIONAL:
        if field not in texts_in(required):
            yield DocumentProblem("/required", "identity_field_dropped", f"must contain {field}")
    if dig(document, "patient_context") == "not_applicable" and "patient_context_ref" in texts_in(required):
        message = "must not contain patient_context_ref when patient_context is not_applicable"
        yield DocumentProblem("/required", "required_but_not_applicable", message)


def _idempotency_rules(document: Any) -> Problems:
    shortest, longest = whole(dig(document, "key", "min_length")), whole(dig(document, "key", "max_length"))
    if shortest is not None and longest is not None and shortest > longest:
        yield DocumentProblem("/key/min_length", "key_length_order", "must not be above max_length")
    required, headers = dig(document, "required"), dig(document, "required_headers")
    if isinstance(required, bool) and isinstance(headers, list) and required is not (KEY_HEADER in texts_in(headers)):
        message = f"must contain {KEY_HEADER} exactly when required is true"
        yield DocumentProblem("/required_headers", "key_header_mismatch", message)
    on_repeat, tier = dig(document, "effect_identity", "on_repeat"), dig(document, "effect_identity", "tier")
    if isinstance(on_repeat, str) and (on_repeat == "hold") is not isinstance(tier, str):
        message = "must be a tier exactly when on_repeat is hold"
        yield DocumentProblem("/effect_identity/tier", "effect_tier_mismatch", message)


_CAPS = ("per_context", "per_workflow", "per_user", "per_tenant", "per_region")


def _concurrency_rules(document: Any) -> Problems:
    """A narrower limit above a wider one would never be reached, so it is a mistake."""
    found = {name: whole(dig(document, "limits", name)) for name in _CAPS}
    chains = [("per_context", "per_workflow", "per_tenant", "per_region"), ("per_user", "per_tenant", "per_region")]
    pairs = {pair for chain in chains for pair in pairwise(name for name in chain if found[name] is not None)}
    for narrow, wide in sorted(pairs):
        low, high = found[narrow], found[wide]
        if low is not None and high is not None and low > high:
            yield DocumentProblem(f"/limits/{narrow}", "limit_order", f"must not be above {wide}")


def _retry_rules(document: Any) -> Problems:
    retries, most = dig(document, "automatic_retries"), whole(dig(document, "max_attempts"))
    if retries == "never" and most is not None and most != 1:
        yield DocumentProblem("/max_attempts", "retries_off", "must be 1 when automatic_retries is never")
    if retries == "when_safe" and most == 1:
        yield DocumentProblem("/max_attempts", "retries_on", "must be at least 2 when automatic_retries is when_safe")
    yield from _backoff_rules(document, retries=max(0, min(most or 0, 10) - 1))


def _backoff_rules(document: Any, *, retries: int) -> Problems:
    backoff = dig(document, "backoff_seconds")
    waits = [whole(wait) for wait in backoff] if isinstance(backoff, list) else []
    steps = [wait for wait in waits if wait is not None]
    if not steps or len(steps) != len(waits):
        return
    if any(later < earlier for earlier, later in pairwise(steps)):
        yield DocumentProblem("/backoff_seconds", "backoff_order", "must not become shorter from one wait to the next")
    jitter, window = dig(document, "jitter_fraction"), whole(dig(document, "window_seconds"))
    if window is None or isinstance(jitter, bool) or not isinstance(jitter, int | float):
        return
    # The last retry must start inside the window even with the maximum jitter; otherwise it would never run.
    last_start = sum(steps[min(index, len(steps) - 1)] for index in range(retries)) * (1 + jitter)
    if last_start > window:
        message = "must be at least the sum of all waits between max_attempts executions, jitter included"
        yield DocumentProblem("/window_seconds", "retry_window_too_short", message)


def _quarantine_rules(document: Any) -> Problems:
    categories, triggers = dig(document, "categories"), objects(dig(document, "triggers"))
    names = [trigger.get("on") for _, trigger in triggers]
    for name in DEFAULT_TRIGGERS:
        if isinstance(dig(document, "triggers"), list) and names.count(name) != 1:
            yield DocumentProblem("/triggers", "trigger_coverage", f"must list {name} exactly once")
    if isinstance(categories, list) and "outcome_unknown" not in texts_in(categories):
        yield DocumentProblem("/categories", "unknown_outcome_hidden", "must contain outcome_unknown")
    for index, trigger in triggers:
        pointer, category = pointer_to("triggers", index, "category"), trigger.get("category")
        if trigger.get("on") in TRIGGERS_OF_UNKNOWN_OUTCOME and category != "outcome_unknown":
            yield DocumentProblem(pointer, "unknown_outcome_hidden", "must be outcome_unknown for this trigger")
        if isinstance(categories, list) and isinstance(category, str) and category not in texts_in(categories):
            yield DocumentProblem(pointer, "category_not_in_use", "must be one of the document's categories")


def _throttle_rules(document: Any) -> Problems:
    limits = dig(document, "limits")
    if not isinstance(limits, list):
        return
    entries = objects(limits)
    for kind in DIMENSIONS:
        if all(entry.get("per") != kind for _, entry in entries):
            yield DocumentProblem("/limits", "throttle_missing", f"must limit requests per {kind}")
    seen: set[tuple[str, int]] = set()
    for index, entry in entries:
        per, window = entry.get("per"), whole(entry.get("window_seconds"))
        if not isinstance(per, str) or window is None:
            continue
        if (per, window) in seen:
            message = "repeats an earlier throttle of the same kind and window"
            yield DocumentProblem(pointer_to("limits", index), "throttle_repeated", message)
        seen.add((per, window))


def _boundary_rules(document: Any) -> Problems:
    if isinstance(document, dict):
        for path, rule, message in declaration_problems(document):
            yield DocumentProblem(pointer_to(*path), rule, message)


def _regional_rules(document: Any) -> Problems:
    years, profiles = whole(dig(document, "retention_years")), load_profiles()
    if years is None:
        return
    for code in sorted(texts_in(dig(document, "regions")) & set(profiles.codes)):
        floor = profiles.get(code).terms.retention_years
        if years < floor:
            message = f"must be at least {floor}, the default of {code}"
            yield DocumentProblem("/retention_years", "retention_below_profile", message)


RULES: dict[str, Callable[[Any], Problems]] = {
    "attempt_identity_envelope": _envelope_rules,
    "idempotency_key_policy": _idempotency_rules,
    "concurrency_and_locks": _concurrency_rules,
    "retry_and_replay": _retry_rules,
    "failure_quarantine": _quarantine_rules,
    "throttles_and_misuse": _throttle_rules,
    "metadata_boundary": _boundary_rules,
    "regional_compliance": _regional_rules,
}
