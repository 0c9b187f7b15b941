"""A workflow's human-review step in the review queue: confirm, override, or decline, which requeues it."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from attempts.lifecycle import hooks as handlers
from attempts.lifecycle.selectors.attempts import attempt_lock
from attempts.lifecycle.services.transition import transition_apply
from attempts.reviews.models import Review, ReviewVote
from attempts.reviews.services.clock import reviews_expire
from attempts.reviews.services.human_review import human_review_end
from governance.ledger.models import LedgerEntry
from governance.ledger.services import person_commitment
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import (
    JUDGING,
    RELEASING,
    REVIEWER,
    Clinic,
    actions,
    ask,
    do,
    problem,
    set_deadline,
    status_of,
    url,
    violations,
    votes,
)
from tests.cast import Cast
from tests.tampering import triggers_off

WAITING = ("requested", "", "")


@pytest.fixture
def told(monkeypatch: Any) -> list[tuple[Any, ...]]:
    """What was handed upward: row, old, new, verdict and kind of actor."""
    heard: list[tuple[Any, ...]] = []

    def review(row: Review, *, old: str, new: str, vote: ReviewVote | None, actor: Any, at: Any) -> None:
        assert transaction.get_connection().in_atomic_block
        heard.append((row.origin_step, old, new, vote.verdict if vote else None, actor.kind.value, at))

    def attempt(row: Any, *, old: str, new: str, actor: Any, at: Any) -> None:
        heard.append((row.origin_step, old, new, None, actor.kind.value, at))

    monkeypatch.setattr(handlers, "_review_ended", [])
    monkeypatch.setattr(handlers, "_attempt_moved", [])
    handlers.on_review_ended(review)
    handlers.on_review_ended(review)
    handlers.on_attempt_moved(attempt)
    return heard


def row_of(review: Review) -> Review:
    with every_tenant():
        return Review.objects.get(id=review.id)


@pytest.mark.parametrize(("verb", "status"), [("confirm", "confirmed"), ("override", "overridden")])
def test_a_judgement_ends_the_review_and_is_handed_upward_with_its_vote(
    cast: Cast, rita: Any, told: Any, verb: str, status: str
) -> None:
    review = ask(cast)
    answer = do(rita, review, verb)
    assert answer.status_code == 200, answer.content
    card = answer.json()
    assert (card["status"], card["votes"][0]["voter"], card["votes"][0]["verdict"]) == (status, "rita", verb)
    assert (card["quorum"]["approvals"], card["quorum"]["missing"]) == (1, 0)
    assert actions(review) == ["review.voted", f"review.{status}"]
    decided_at = row_of(review).decided_at
    assert told == [(review.origin_step, "requested", status, verb, "person", decided_at)]
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=review.id, action="review.opened")
        assert entry.payload["origin_step"] == str(review.origin_step)
        assert "case-0042" not in str(entry.payload)


def test_an_override_says_where_the_other_judgement_is_kept(cast: Cast, rita: Any) -> None:
    review = ask(cast)
    refused = do(rita, review, "override", result_ref="jane.canary@example.com")
    assert problem(refused) == (422, "metadata-boundary")
    assert b"canary" not in refused.content
    assert problem(do(rita, review, "override", payload_sha256="short")) == (400, "invalid-input")
    answer = do(rita, review, "override", result_ref="finding-0007", payload_sha256="9b" * 32)
    assert answer.status_code == 200, answer.content
    vote = answer.json()["votes"][0]
    assert (vote["result_ref"], vote["result_sha256"]) == ("finding-0007", "9b" * 32)
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=review.id, action="review.voted")
        assert (entry.payload["result_ref"], entry.payload["result_sha256"]) == ("finding-0007", "9b" * 32)


@pytest.mark.parametrize("verb", ["confirm", "decline"])
def test_only_an_override_has_a_result(cast: Cast, rita: Any, verb: str) -> None:
    review = ask(cast)
    assert problem(do(rita, review, verb, result_ref="finding-0007")) == (400, "invalid-input")
    with pytest.raises(IntegrityError, match="vote_result_is_an_override"), every_tenant(), transaction.atomic():
        ReviewVote(
            review=review, voter_ref="v", verdict="confirm", result_ref="finding-0007", at=review.requested_at
        ).save()


def test_a_decline_requeues_without_the_person_who_declined(cast: Cast, rita: Any, sam: Any, told: Any) -> None:
    review = ask(cast)
    do(rita, review, "claim")
    answer = do(rita, review, "decline")
    assert answer.status_code == 200, answer.content
    card = answer.json()
    assert (card["status"], card["requeues"], card["claim"], card["quorum"]["missing"]) == ("requested", 1, None, 1)
    assert [(row["username"], row["reason"]) for row in card["excluded"]] == [("rita", "already_voted")]
    assert card["may_decide"]["reason"] == "already_voted"
    assert actions(review) == ["review.claimed", "review.voted", "review.requeued"]
    for verb in (*JUDGING, "claim"):
        assert problem(do(rita, review, verb)) == (409, "already-voted")
    assert violations() == ["second_person_missing"] * 4
    assert told == []
    assert do(sam, review, "claim").status_code == 200
    assert do(sam, review, "confirm").status_code == 200
    assert (status_of(review)[0], votes(review)) == ("confirmed", ["decline", "confirm"])
    assert [row[3] for row in told] == ["confirm"]


def test_a_decline_of_who_stands_in_is_their_own(cast: Cast, rita: Any) -> None:
    review = ask(cast)
    dora = cast.session(cast.person("dora", REVIEWER))
    assert do(rita, review, "delegate").status_code == 201
    assert do(dora, review, "decline").status_code == 200
    assert problem(do(dora, review, "confirm")) == (409, "already-voted")
    assert do(rita, review, "confirm").status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"reason_code": ""},
        {"reason_code": "no_such_code"},
        {"reason_code": "reviewer_wrong_target"},
        {"reason_code": "insufficient_information"},
        {"extra": 1},
    ],
    ids=["empty", "unknown", "other-scope", "note-missing", "unknown-field"],
)
def test_a_decline_names_a_reason_to_decline_and_its_note(cast: Cast, rita: Any, changes: Any) -> None:
    review = ask(cast)
    assert problem(do(rita, review, "decline", **changes)) == (400, "invalid-input")
    assert (status_of(review), votes(review), row_of(review).requeues) == (WAITING, [], 0)


@pytest.mark.parametrize("verb", JUDGING)
def test_a_judgement_on_another_digest_is_412(cast: Cast, rita: Any, verb: str) -> None:
    review = ask(cast)
    assert problem(do(rita, review, verb, action_digest="0" * 64)) == (412, "digest-changed")
    assert (status_of(review), votes(review), violations()) == (WAITING, [], [])


@pytest.mark.parametrize("verb", JUDGING)
@pytest.mark.parametrize("role", ["auditor", "operator", "reviewer:sa_qa", "owner:privacy"])
def test_without_the_tiers_role_it_is_403_and_a_violation(cast: Cast, role: str, verb: str) -> None:
    review = ask(cast)
    assert problem(do(cast.session(cast.person("wrong", role)), review, verb)) == (403, "not-a-reviewer")
    assert violations() == ["unauthorized_decision"]
    assert (status_of(review), votes(review)) == (WAITING, [])


@pytest.mark.parametrize("verb", JUDGING)
def test_strangers_find_nothing_and_services_and_nobody_do_not_decide(cast: Cast, client: Any, verb: str) -> None:
    review = ask(cast)
    stranger = cast.session(cast.person("stranger", REVIEWER, organization=cast.other))
    assert problem(do(stranger, review, verb)) == (404, "not-found")
    assert violations() == ["cross_tenant"]
    assert problem(do(cast.api(), review, verb)) == (403, "scope-missing")
    assert problem(do(cast.session(cast.nobody), review, verb)) == (403, "scope-missing")
    assert client.post(url(review, verb), {}, content_type="application/json").status_code == 401
    assert (status_of(review), votes(review)) == (WAITING, [])


@pytest.mark.parametrize("verb", JUDGING)
def test_who_set_the_step_in_motion_does_not_judge_it(cast: Cast, rita: Any, verb: str) -> None:
    with every_tenant():
        ref = person_commitment(user_id=cast.reviewer.id)
    review = ask(cast, requester_refs=[ref])
    assert rita.get(url(review)).json()["excluded"][0]["reason"] == "own_request"
    assert problem(do(rita, review, verb)) == (403, "own-work")
    assert violations() == ["own_work_approved"]
    assert status_of(review) == WAITING


@pytest.mark.parametrize("verb", JUDGING)
def test_a_judgement_after_the_deadline_ends_the_review_though_no_tick_ran(
    cast: Cast, rita: Any, told: Any, verb: str
) -> None:
    review = ask(cast)
    deadline = set_deadline(review, seconds=-5)
    assert problem(do(rita, review, verb)) == (409, "review-expired")
    assert (status_of(review)[0], votes(review)) == ("expired", [])
    assert told == [(review.origin_step, "requested", "expired", None, "clock", deadline)]
    assert actions(review) == ["review.expired", "violation.recorded"]


def test_the_tick_ends_what_is_overdue_and_never_what_has_no_deadline(cast: Cast, told: Any) -> None:
    due, endless = ask(cast), ask(cast, expires_at=None)
    deadline = set_deadline(due, seconds=-5)
    assert reviews_expire(at=timezone.now()) == 1
    assert (status_of(due)[0], status_of(endless)[0]) == ("expired", "requested")
    assert told == [(due.origin_step, "requested", "expired", None, "clock", deadline)]


def test_a_review_without_a_deadline_is_read_and_decided(cast: Cast, rita: Any) -> None:
    review = ask(cast, expires_at=None)
    card = rita.get(url(review)).json()
    assert (card["expires_at"], card["overdue"]) == (None, False)
    assert do(rita, review, "confirm").status_code == 200


def test_whoever_ends_the_step_ends_its_review_and_is_not_told(cast: Cast, rita: Any, told: Any) -> None:
    review = ask(cast)
    who = {"actor": SYSTEM, "at": timezone.now(), "reason_code": "superseded"}
    with every_tenant(), transaction.atomic():
        ended = human_review_end(origin_step=review.origin_step, **who)
        assert ended is not None
        assert human_review_end(origin_step=review.origin_step, **who) is None
        assert human_review_end(origin_step=uuid4(), **who) is None
    assert (status_of(review)[0], actions(review), told) == ("canceled", ["review.canceled"], [])
    assert problem(do(rita, review, "confirm")) == (409, "review-over")


def test_a_step_has_one_open_review_and_may_ask_again_afterwards(cast: Cast, rita: Any) -> None:
    review = ask(cast)
    with pytest.raises(IntegrityError, match="review_one_open_per_step"):
        ask(cast, origin_step=review.origin_step)
    do(rita, review, "override")
    assert ask(cast, origin_step=review.origin_step).status == "requested"


@pytest.mark.parametrize(
    "changes",
    [{"origin_step": None}, {"kind": "release"}, {"kind": "other"}],
    ids=["without-a-step", "release-without-an-attempt", "unknown-kind"],
)
def test_the_database_keeps_the_kinds_apart(cast: Cast, changes: Any) -> None:
    review = ask(cast)
    refused = pytest.raises(IntegrityError, match="review_fits_its_kind")
    with triggers_off("attempts_review"), refused, every_tenant(), transaction.atomic():
        Review.objects.filter(id=review.id).update(**changes)


def test_an_error_in_a_handler_undoes_the_judgement(cast: Cast, rita: Any, monkeypatch: Any) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise RuntimeError("the workflow could not take it")

    monkeypatch.setattr(handlers, "_review_ended", [failing])
    review = ask(cast)
    assert do(rita, review, "confirm").status_code == 500
    assert (status_of(review), votes(review), actions(review)) == (WAITING, [], [])


def test_the_queue_and_the_card_show_both_kinds(cast: Cast, clinic: Clinic, rita: Any) -> None:
    held, asked = clinic.hold(), ask(cast)
    lines = {row["id"]: row for row in rita.get("/api/v1/reviews").json()["results"]}
    line = lines[str(asked.id)]
    assert (line["kind"], line["label"], line["subject_ref"]) == ("human_review", "Check the finding", "case-0042")
    assert (line["attempt_id"], line["connector"], line["requeues"]) == (None, None, 0)
    assert (lines[str(held.id)]["kind"], lines[str(held.id)]["origin_step"]) == ("release", None)
    only = rita.get("/api/v1/reviews?kind=human_review").json()["results"]
    assert [row["id"] for row in only] == [str(asked.id)]
    card = rita.get(url(asked)).json()
    assert (card["origin_step"], card["label"]) == (str(asked.origin_step), "Check the finding")
    assert (card["attempt_id"], card["asked"], card["asked_by"], card["why_held"]) == (None, None, None, None)
    assert card["may_decide"]["verdicts"] == ["confirm", "override", "decline"]
    assert card["release_blocked"] is None


def test_the_verbs_of_the_other_kind_leave_no_vote(cast: Cast, clinic: Clinic, rita: Any) -> None:
    held, asked = clinic.hold(), ask(cast)
    for review, verbs in ((held, JUDGING), (asked, RELEASING)):
        for verb in verbs:
            assert problem(do(rita, review, verb)) == (409, "wrong-state")
        assert (status_of(review)[0], votes(review)) == ("requested", [])


def test_the_console_lists_both_kinds(cast: Cast, clinic: Clinic) -> None:
    held, asked = clinic.hold(), ask(cast)
    console = cast.console(cast.operator)
    listing = console.get("/admin/attempts/review/").content.decode()
    assert "Check the finding case-0042" in listing
    for review in (held, asked):
        assert console.get(f"/admin/attempts/review/{review.id}/change/").status_code == 200
    found = console.get(f"/admin/attempts/review/?q={asked.origin_step}").content.decode()
    assert "Check the finding" in found


def test_only_moves_of_a_workflows_attempts_are_handed_upward(clinic: Clinic, rita: Any, told: Any) -> None:
    review = clinic.hold()
    assert do(rita, review, "approve").status_code == 200
    assert told == []
    step, at = uuid4(), timezone.now()
    with every_tenant(), transaction.atomic():
        attempt = attempt_lock(attempt_id=review.attempt_id)  # type: ignore[arg-type]
        attempt.origin_step = step
        transition_apply(attempt, "deny", actor=SYSTEM, at=at, reason_code="cancelled_by_caller")
    assert told == [(step, "approved-for-execution", "preflight-denied", None, "system", at)]
