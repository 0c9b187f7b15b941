"""Deciding: every rule of a vote, over HTTP with signed-in people."""

from typing import Any

import pytest
from django.utils import timezone

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.states import DISPATCH
from attempts.reviews.models import Review, ReviewVote
from governance.contracts.services.contracts import contract_retire, contract_suspend
from governance.contracts.states import ReadinessVerdict
from governance.ledger.models import LedgerEntry
from governance.outside.wake_up import wake_up_received
from governance.people.services.people import person_role_take
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import (
    REVIEWER,
    Clinic,
    actions,
    do,
    last_move,
    problem,
    set_deadline,
    status_of,
    url,
    violations,
    votes,
)
from tests.cast import Cast
from tests.governed import approve as decide_readiness

APPROVED = ("approved", "approved-for-execution", "")
REJECTED = ("rejected", "preflight-denied", "review_rejected")
WAITING = ("requested", "review-required", "review_required")


def test_one_approval_releases_the_attempt_and_everything_is_on_record(clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    answer = do(rita, review, "approve")
    assert answer.status_code == 200, answer.content
    assert status_of(review) == APPROVED
    assert actions(review) == ["review.voted", "review.approved", "attempt.approved"]
    assert last_move(review).to_state == "approved-for-execution"
    with every_tenant():
        vote = ReviewVote.objects.get(review=review)
        assert (vote.verdict, vote.action_digest, vote.on_behalf_of_ref) == ("approve", review.action_digest, "")
        entry = LedgerEntry.objects.get(subject_id=review.id, action="review.voted")
        assert entry.actor_ref == vote.voter_ref
        assert entry.payload["action_digest"] == review.action_digest
    assert answer.json()["votes"][0]["voter"] == "rita"


def test_one_rejection_denies_the_attempt(two: Clinic, rita: Any) -> None:
    review = two.hold()
    answer = do(rita, review, "reject")
    assert answer.status_code == 200, answer.content
    assert status_of(review) == REJECTED
    assert actions(review) == ["review.voted", "review.rejected", "attempt.denied"]
    with every_tenant():
        assert LedgerEntry.objects.get(subject_id=review.id, action="review.rejected").reason_code == (
            "reviewer_wrong_target"
        )


def test_two_approvals_come_from_two_people(two: Clinic, rita: Any, sam: Any) -> None:
    review = two.hold()
    first = do(rita, review, "approve")
    assert first.json()["quorum"]["missing"] == 1
    assert status_of(review) == WAITING
    assert problem(do(rita, review, "approve")) == (409, "already-voted")
    assert problem(do(rita, review, "reject")) == (409, "already-voted")
    assert status_of(review) == WAITING
    assert violations() == ["second_person_missing"] * 2
    assert do(sam, review, "approve").status_code == 200
    assert status_of(review) == APPROVED
    assert votes(review) == ["approve", "approve"]


def test_a_second_person_may_still_reject_what_the_first_approved(two: Clinic, rita: Any, sam: Any) -> None:
    review = two.hold()
    do(rita, review, "approve")
    assert do(sam, review, "reject").status_code == 200
    assert status_of(review) == REJECTED


def test_an_approval_stops_counting_when_its_giver_loses_the_role(cast: Cast, two: Clinic, rita: Any, sam: Any) -> None:
    review = two.hold()
    do(rita, review, "approve")
    with every_tenant():
        person_role_take(
            actor=SYSTEM, at=timezone.now(), user=cast.reviewer, organization=cast.organization, role=REVIEWER
        )
    answer = do(sam, review, "approve")
    assert answer.json()["quorum"] | {"by_tier": []} == {
        "approvals_required": 2,
        "approvals": 1,
        "missing": 1,
        "by_tier": [],
    }
    assert status_of(review) == WAITING
    third = cast.session(cast.person("tess", REVIEWER))
    assert do(third, review, "approve").status_code == 200
    assert status_of(review) == APPROVED


def test_nobody_decides_on_what_their_own_service_asked_for(cast: Cast, clinic: Clinic) -> None:
    review = clinic.hold()
    boss = cast.session(clinic.responsible)
    for verb in ("approve", "reject"):
        assert problem(do(boss, review, verb)) == (403, "own-work")
    assert violations() == ["own_work_approved"] * 2
    assert (status_of(review), votes(review)) == (WAITING, [])


@pytest.mark.parametrize("verb", ["approve", "reject", "claim", "delegate"])
@pytest.mark.parametrize("role", ["auditor", "operator", "reviewer:sa_qa", "owner:privacy"])
def test_without_the_tiers_role_it_is_403_and_a_violation(cast: Cast, clinic: Clinic, role: str, verb: str) -> None:
    review = clinic.hold()
    person = cast.session(cast.person("wrong", role))
    assert problem(do(person, review, verb)) == (403, "not-a-reviewer")
    assert violations() == ["unauthorized_decision"]
    assert (status_of(review), votes(review)) == (WAITING, [])


@pytest.mark.parametrize("verb", ["approve", "reject", "claim", "release", "delegate"])
def test_a_reviewer_of_another_organization_finds_nothing_and_is_on_record(
    cast: Cast, clinic: Clinic, verb: str
) -> None:
    review = clinic.hold()
    stranger = cast.session(cast.person("stranger", REVIEWER, organization=cast.other))
    assert problem(do(stranger, review, verb)) == (404, "not-found")
    assert problem(stranger.get(url(review))) == (404, "not-found")
    assert set(violations()) == {"cross_tenant"}
    assert status_of(review) == WAITING


def test_a_violation_is_recorded_where_the_review_is(cast: Cast, clinic: Clinic) -> None:
    """Whoever acts in several organizations leaves no trace of one in another."""
    review = clinic.hold()
    for number in range(4):
        organization = Organization(slug=f"more-{number}", name="More", regions=["US"])
        with every_tenant():
            organization.save()
        person = cast.person("many", REVIEWER, organization=organization)
    cast.person("many", "auditor")
    assert problem(do(cast.session(person), review, "approve")) == (403, "not-a-reviewer")
    with every_tenant():
        assert {entry.organization_id for entry in LedgerEntry.objects.filter(action="violation.recorded")} == {
            cast.organization.id
        }


@pytest.mark.parametrize("verb", ["approve", "reject", "claim", "release", "delegate"])
def test_a_key_may_not_decide_whatever_its_scopes(cast: Cast, clinic: Clinic, verb: str) -> None:
    review = clinic.hold()
    assert problem(do(cast.api(), review, verb)) == (403, "scope-missing")
    assert (status_of(review), votes(review)) == (WAITING, [])


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_nobody_signed_in_is_401(clinic: Clinic, verb: str, client: Any) -> None:
    review = clinic.hold()
    assert client.post(url(review, verb), {}, content_type="application/json").status_code == 401


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_vote_on_another_digest_is_412(clinic: Clinic, rita: Any, verb: str) -> None:
    review = clinic.hold()
    assert problem(do(rita, review, verb, action_digest="0" * 64)) == (412, "digest-changed")
    assert problem(do(rita, review, verb, action_digest="ä")) == (412, "digest-changed")
    with every_tenant():
        Review.objects.filter(id=review.id).update(action_digest="f" * 64)
    assert problem(do(rita, review, verb)) == (412, "digest-changed")
    assert problem(do(rita, review, verb, action_digest="f" * 64)) == (412, "digest-changed")
    assert (status_of(review), votes(review), violations()) == (WAITING, [], [])


@pytest.mark.parametrize(
    "changes",
    [
        {"reason_code": ""},
        {"reason_code": "no_such_code"},
        {"reason_code": "planned_maintenance"},
        {"reason_code": "reviewer_too_risky"},
        {"reason_code": "reviewer_too_risky", "note": "  "},
        {"extra": 1},
        {"note": "x" * 281},
    ],
    ids=["empty", "unknown", "other-scope", "note-missing", "note-blank", "unknown-field", "note-too-long"],
)
def test_a_rejection_names_a_denial_that_exists_and_its_note(clinic: Clinic, rita: Any, changes: Any) -> None:
    review = clinic.hold()
    assert problem(do(rita, review, "reject", **changes)) == (400, "invalid-input")
    assert (status_of(review), votes(review)) == (WAITING, [])


def test_a_note_is_kept_beside_the_ledger_and_inspected(clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    reason = {"reason_code": "reviewer_too_risky"}
    refused = do(rita, review, "reject", **reason, note="call jane.canary@example.com")
    assert problem(refused) == (422, "metadata-boundary")
    assert b"canary" not in refused.content
    answer = do(rita, review, "reject", **reason, note="Ask the owner first")
    assert answer.json()["votes"][0]["note"] == "Ask the owner first"
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=review.id, action="review.voted")
        note = ReviewVote.objects.select_related("note").get(review=review).note
        assert note is not None
        assert entry.payload["note_sha256"] == note.sha256
        assert "owner first" not in str(entry.payload)


def test_an_approval_may_name_a_reason_and_it_must_exist(clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    assert problem(do(rita, review, "approve", reason_code="no_such_code")) == (400, "invalid-input")
    assert do(rita, review, "approve", reason_code="planned_maintenance").status_code == 200


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_vote_after_the_deadline_ends_the_review_though_no_tick_ran(clinic: Clinic, rita: Any, verb: str) -> None:
    review = clinic.hold()
    deadline = set_deadline(review, seconds=-5)
    refused = do(rita, review, verb)
    assert problem(refused) == (409, "review-expired")
    assert refused.json()["reason_code"] == "review_expired"
    assert status_of(review) == ("expired", "preflight-denied", "review_expired")
    assert actions(review) == ["review.expired", "attempt.denied", "violation.recorded"]
    assert (last_move(review).actor_kind, last_move(review).at) == ("clock", deadline)
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=review.id, action="review.expired")
        row = Review.objects.select_related("attempt").get(id=review.id)
        assert (entry.actor_kind, entry.at, entry.reason_code) == ("clock", deadline, "review_expired")
        assert row.attempt is not None
        assert (row.decided_at, row.attempt.ended_at) == (deadline, deadline)
    assert (votes(review), violations()) == ([], ["unauthorized_decision"])
    assert problem(do(rita, review, verb)) == (409, "review-expired")


def test_whoever_tries_too_late_without_the_role_ends_it_too_and_is_refused_for_the_role(
    cast: Cast, clinic: Clinic
) -> None:
    review = clinic.hold()
    set_deadline(review, seconds=-5)
    assert problem(do(cast.session(cast.auditor), review, "approve")) == (403, "not-a-reviewer")
    assert status_of(review)[0] == "expired"


def shut(cast: Cast, scope: ShutdownScope, target: str = "", *, drill: bool = False) -> None:
    wide = scope in {ShutdownScope.GLOBAL, ShutdownScope.REGION}
    with every_tenant():
        shutdown_engage(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=timezone.now(),
            scope=scope,
            organization_id=None if wide else cast.organization.id,
            target=target,
            reason_code="rehearsal",
            drill=drill,
            installation=wide,
        )


SHUTDOWNS = [
    (ShutdownScope.GLOBAL, ""),
    (ShutdownScope.ORGANIZATION, ""),
    (ShutdownScope.CONTRACT, "close-case"),
    (ShutdownScope.CONTRACT, "close-case/1"),
    (ShutdownScope.CONNECTOR, "external"),
    (ShutdownScope.REGION, "US"),
]


@pytest.mark.parametrize(("scope", "target"), SHUTDOWNS, ids=[f"{scope} {target}" for scope, target in SHUTDOWNS])
def test_nothing_is_approved_under_a_shutdown_and_rejecting_is_possible(
    cast: Cast, clinic: Clinic, rita: Any, scope: ShutdownScope, target: str
) -> None:
    review = clinic.hold()
    shut(cast, scope, target)
    assert rita.get(url(review)).json()["release_blocked"] == "shutdown_engaged"
    refused = do(rita, review, "approve")
    assert (*problem(refused), refused.json()["reason_code"]) == (409, "release-blocked", "shutdown_engaged")
    assert (status_of(review), votes(review)) == (WAITING, [])
    assert do(rita, review, "reject").status_code == 200
    assert status_of(review) == REJECTED


def test_a_drill_and_a_shutdown_of_something_else_stop_nothing(cast: Cast, clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    shut(cast, ShutdownScope.ORGANIZATION, drill=True)
    shut(cast, ShutdownScope.CONNECTOR, "http")
    assert do(rita, review, "approve").status_code == 200


def close(cast: Cast, clinic: Clinic, how: str) -> None:
    if how == "readiness_revoked":
        decide_readiness(cast, clinic.contract, "metadata_boundary", verdict=ReadinessVerdict.REVOKE)
        return
    act = {"contract_suspended": contract_suspend, "contract_retired": contract_retire}[how]
    with every_tenant():
        act(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=timezone.now(),
            contract_id=clinic.contract.id,
            reason_code="planned_maintenance",
        )


@pytest.mark.parametrize("how", ["contract_suspended", "contract_retired", "readiness_revoked"])
def test_nothing_is_approved_under_a_closed_contract(cast: Cast, clinic: Clinic, rita: Any, how: str) -> None:
    review, other = clinic.hold(), clinic.hold()
    close(cast, clinic, how)
    refused = do(rita, review, "approve")
    assert (*problem(refused), refused.json()["reason_code"]) == (409, "release-blocked", how)
    assert status_of(review) == WAITING
    assert do(rita, other, "reject").status_code == 200


def test_nothing_is_approved_in_a_suspended_organization(cast: Cast, clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    with every_tenant():
        Organization.objects.filter(id=cast.organization.id).update(status="suspended")
    assert problem(do(rita, review, "approve")) == (409, "release-blocked")


@pytest.mark.parametrize(
    ("mode", "connector", "rung"),
    [("active", "http", True), ("client_driven", "http", False), ("active", "external", False)],
)
def test_a_worker_is_told_after_the_commit_where_holdpoint_executes(
    cast: Cast,
    rita: Any,
    mode: str,
    connector: str,
    rung: bool,
    monkeypatch: Any,
    django_capture_on_commit_callbacks: Any,
) -> None:
    """The broker is replaced, not our code: what would be sent is what counts."""
    sent: list[str] = []
    monkeypatch.setattr("celery.current_app.send_task", lambda name, **_: sent.append(name), raising=True)
    wake_up_received(DISPATCH)  # of an earlier test
    clinic = Clinic(cast, adapter=connector)
    review = clinic.hold(runtime_mode=mode, action={"connector": connector})
    with django_capture_on_commit_callbacks(execute=True):
        assert do(rita, review, "approve").status_code == 200
        assert sent == []
    assert sent == ([DISPATCH] if rung else [])


def test_a_shadow_attempt_is_decided_on_and_never_becomes_eligible(clinic: Clinic, rita: Any) -> None:
    review = clinic.hold(runtime_mode="shadow")
    assert do(rita, review, "approve").status_code == 200
    with every_tenant():
        assert Attempt.objects.get(review__id=review.id).next_eligible_at is None
