"""Compiled snapshots: found again by hash, never under a false one, bounded, and never looser than the real profile."""

from copy import deepcopy
from itertools import combinations

import pytest

from governance.enforcement.rules import evaluate
from governance.enforcement.rules.policy_rules import compile_policy
from governance.enforcement.rules.region_terms import compile_region
from governance.enforcement.rules.snapshots import MAX_CACHED, SnapshotCache, SnapshotMalformed, SnapshotMismatch
from governance.ledger.rules.entry import canonical_sha256
from governance.regions.rules import load_profiles, merge, residency_allows
from tests.governance.enforcement.support import as_bytes, environment, policy, request

pytestmark = pytest.mark.unit

OPEN = [{"id": "open", "when": "true", "verdict": "allow"}]
SHUT = [{"id": "shut", "when": "true", "verdict": "deny"}]


def test_a_forged_snapshot_is_refused_before_and_after_the_true_one_was_seen() -> None:
    true, forged = policy(SHUT), policy(OPEN)
    named = canonical_sha256(true)
    worlds = [environment({"policy": each, "facts.policy_sha256": named}) for each in (forged, true, forged)]
    before, honest, after = [evaluate(request(), world) for world in worlds]
    assert as_bytes(before) == as_bytes(after)
    assert before.reason_code == "enforcement_exception"
    assert honest.reason_code == "policy_denied"


def test_the_same_content_is_compiled_once() -> None:
    cache = SnapshotCache(compile_policy)
    first = cache.load(policy(), sha256=canonical_sha256(policy())).get()
    again = cache.load(policy(), sha256=canonical_sha256(policy())).get()
    assert first is not None
    assert first is again


def test_changing_the_object_afterwards_changes_nothing_that_runs() -> None:
    cache, snapshot = SnapshotCache(compile_policy), policy(SHUT)
    named = canonical_sha256(snapshot)
    cache.load(snapshot, sha256=named)
    snapshot["rules"] = OPEN
    compiled = cache.load(snapshot, sha256=named).get()
    assert compiled is not None
    assert [rule.id for rule in compiled.rules] == ["shut"]
    assert cache.load(deepcopy(snapshot), sha256=named).error is SnapshotMismatch


def test_a_malformed_snapshot_raises_when_it_is_used_and_not_before() -> None:
    loaded = SnapshotCache(compile_policy).load({"rules": []}, sha256=canonical_sha256({"rules": []}))
    with pytest.raises(SnapshotMalformed):
        loaded.get()


def test_the_cache_is_bounded_and_forgets_the_least_recently_used() -> None:
    compiled: list[int] = []

    def compile_number(snapshot: dict[str, int]) -> int:
        compiled.append(snapshot["n"])
        return snapshot["n"]

    cache = SnapshotCache(compile_number)

    def load(number: int) -> None:
        cache.load({"n": number}, sha256=canonical_sha256({"n": number}))

    for number in range(1, MAX_CACHED + 1):
        load(number)
    load(1)
    load(MAX_CACHED + 1)
    load(1)
    assert compiled == list(range(1, MAX_CACHED + 2))
    load(2)
    assert compiled[-1] == 2


def test_a_profile_from_its_snapshot_is_never_looser_than_the_profile_itself() -> None:
    profiles = load_profiles()
    for codes in [*combinations(profiles.codes, 1), *combinations(profiles.codes, 2)]:
        effective = merge(profiles.select(codes))
        rebuilt = compile_region(effective.document()).profile
        assert rebuilt.regions == effective.regions
        for place in (*profiles.codes, "CN", "ZZ", "", "*"):
            allowed = residency_allows(effective, deployment_region=place)
            assert residency_allows(rebuilt, deployment_region=place) <= allowed
            if len(codes) == 1:
                assert residency_allows(rebuilt, deployment_region=place) == allowed
