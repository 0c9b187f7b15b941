"""Signed votes: only the person's own passkey, for this review, action and verdict, once. Everything else is refused,
and what somebody writes into the table does not count."""

from base64 import urlsafe_b64decode
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from attempts.reviews.errors import SignatureNeeded
from attempts.reviews.models import Review, ReviewVote, VoteChallenge, VoteSignature
from attempts.reviews.services.decide import review_vote
from attempts.reviews.states import VoteVerdict
from governance.enforcement.models import snapshot_load
from governance.ledger.models import LedgerEntry
from governance.ledger.services import person_commitment
from governance.people.models import Passkey, User
from governance.people.rules.passkeys import Assertion
from governance.people.services.people import sign_in_reset
from governance.violations.errors import RecordImmutable
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import REVIEWER, Clinic, do, problem, status_of, url, violations, votes
from tests.authenticator import SoftKey, assertion_json, register, text
from tests.cast import Cast
from tests.governed import HOLD, make_contract, open_contract


@pytest.fixture
def signing(cast: Cast) -> Clinic:
    """One signed approval is enough."""
    return Clinic(cast, signature="passkey")


@pytest.fixture
def key(cast: Cast) -> SoftKey:
    """Rita's passkey."""
    made = SoftKey()
    register(cast.reviewer, made)
    return made


def begin(client: Any, review: Review, verdict: str = "approve") -> Any:
    asked = {"verdict": verdict, "action_digest": review.action_digest}
    return client.post(url(review, "signature-challenge"), asked, format="json")


def bytes_of(begun: Any) -> bytes:
    given = begun.json()["public_key"]["challenge"]
    return urlsafe_b64decode(given + "=" * (-len(given) % 4))


def signed(client: Any, review: Review, key: SoftKey, verdict: str = "approve") -> Any:
    """Asks for a challenge, signs it and votes."""
    begun = begin(client, review, verdict)
    assert begun.status_code == 201, begun.content
    assertion = key.sign(bytes_of(begun))
    return do(client, review, verdict, signature=assertion_json(begun.json()["challenge_id"], assertion))


def test_a_signed_approval_is_cast_without_any_other_proof_and_is_on_record(
    cast: Cast, signing: Clinic, rita: Any, key: SoftKey
) -> None:
    review = signing.hold(action={"risk_tier": "high"})
    answer = signed(rita, review, key)
    assert answer.status_code == 200, answer.content
    assert status_of(review)[0] == "approved"
    card = answer.json()
    assert card["signature"] == "passkey"
    assert card["votes"][0]["signature"]["signed_by_person"]
    assert card["votes"][0]["signature"]["new_key"]
    with every_tenant():
        row = VoteSignature.objects.get(vote__review=review)
        voted = LedgerEntry.objects.get(subject_id=review.id, action="review.voted")
        registered = LedgerEntry.objects.get(subject_id=row.passkey, action="passkey.registered")
    assert voted.payload is not None
    assert voted.payload["passkey"] == str(row.passkey)
    assert registered.payload is not None
    assert registered.payload["person"] == person_commitment(user_id=cast.reviewer.id) == registered.actor_ref
    assert registered.payload["public_key"] == row.public_key


def test_a_rejection_is_signed_too(signing: Clinic, rita: Any, key: SoftKey) -> None:
    review = signing.hold()
    assert problem(do(rita, review, "reject")) == (403, "signature-needed")
    assert signed(rita, review, key, "reject").status_code == 200
    assert status_of(review)[0] == "rejected"


def test_a_vote_without_a_signature_is_refused_and_is_no_violation(signing: Clinic, rita: Any, key: SoftKey) -> None:
    review = signing.hold()
    assert problem(do(rita, review, "approve")) == (403, "signature-needed")
    assert (votes(review), violations()) == ([], [])


def test_somebody_without_a_passkey_is_told_to_add_one(signing: Clinic, rita: Any) -> None:
    assert problem(begin(rita, signing.hold())) == (403, "signature-needed")


def test_a_vote_through_the_chat_cannot_be_signed(cast: Cast, signing: Clinic) -> None:
    review = signing.hold()
    with every_tenant(), pytest.raises(SignatureNeeded):
        review_vote(
            actor=cast.actor(cast.reviewer, [cast.organization]),
            at=timezone.now(),
            review_id=review.id,
            verdict=VoteVerdict.APPROVE,
            action_digest=review.action_digest,
            via="slack",
        )


def test_where_the_contract_does_not_ask_an_unsigned_vote_counts_and_is_shown_as_unsigned(
    clinic: Clinic, rita: Any
) -> None:
    review = clinic.hold()
    card = do(rita, review, "approve").json()
    assert (card["status"], card["signature"], card["votes"][0]["signature"]) == ("approved", "none", None)


def test_where_the_contract_does_not_ask_a_signature_is_taken_all_the_same(
    clinic: Clinic, rita: Any, key: SoftKey
) -> None:
    card = signed(rita, clinic.hold(), key).json()
    assert card["votes"][0]["signature"]["signed_by_person"]


FLIPPED = {
    "credential id": lambda a: replace(a, credential_id=a.credential_id[:-1] + bytes([a.credential_id[-1] ^ 1])),
    "rp id": lambda a: replace(a, authenticator_data=bytes([a.authenticator_data[0] ^ 1]) + a.authenticator_data[1:]),
    "counter": lambda a: replace(a, authenticator_data=a.authenticator_data[:-1] + b"\x09"),
    "client data": lambda a: replace(a, client_data_json=a.client_data_json + b" "),
    "signature": lambda a: replace(a, signature=a.signature[:-1] + bytes([a.signature[-1] ^ 1])),
}


@pytest.mark.parametrize("name", FLIPPED)
def test_an_altered_assertion_is_refused_recorded_and_uses_up_its_challenge(
    name: str, signing: Clinic, rita: Any, key: SoftKey
) -> None:
    review = signing.hold()
    begun = begin(rita, review)
    assertion = key.sign(bytes_of(begun))
    sent = assertion_json(begun.json()["challenge_id"], FLIPPED[name](assertion))
    assert problem(do(rita, review, "approve", signature=sent)) == (403, "signature-invalid")
    assert (votes(review), violations()) == ([], ["unauthorized_decision"])
    again = assertion_json(begun.json()["challenge_id"], assertion)
    assert problem(do(rita, review, "approve", signature=again)) == (403, "signature-needed")


def test_a_signature_counts_for_no_other_review_verdict_or_person(
    cast: Cast, signing: Clinic, rita: Any, sam: Any, key: SoftKey
) -> None:
    first, second = signing.hold(), signing.hold()

    def fresh(verdict: str = "approve") -> dict[str, str]:
        begun = begin(rita, first, verdict)
        return assertion_json(begun.json()["challenge_id"], key.sign(bytes_of(begun)))

    assert problem(do(rita, second, "approve", signature=fresh())) == (403, "signature-invalid")
    assert problem(do(rita, first, "approve", signature=fresh("reject"))) == (403, "signature-invalid")
    assert problem(do(sam, first, "approve", signature=fresh())) == (403, "signature-invalid")
    assert (votes(first), votes(second)) == ([], [])


def test_somebody_elses_passkey_does_not_sign_for_me(cast: Cast, signing: Clinic, rita: Any, key: SoftKey) -> None:
    theirs = SoftKey()
    register(cast.person("sam", REVIEWER), theirs)
    assert problem(signed(rita, signing.hold(), theirs)) == (403, "signature-invalid")


def test_a_used_challenge_is_over_and_an_expired_one_too(
    signing: Clinic, rita: Any, sam: Any, cast: Cast, key: SoftKey
) -> None:
    review = signing.hold()
    begun = begin(rita, review)
    with every_tenant():
        VoteChallenge.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    sent = assertion_json(begun.json()["challenge_id"], key.sign(bytes_of(begun)))
    assert problem(do(rita, review, "approve", signature=sent)) == (403, "signature-needed")
    begin(rita, review)
    with every_tenant():
        assert VoteChallenge.objects.count() == 1  # the old one is gone with the next


def test_a_counter_that_does_not_grow_is_refused(signing: Clinic, rita: Any, key: SoftKey) -> None:
    assert signed(rita, signing.hold(), key).status_code == 200
    key.counter = 0
    assert problem(signed(rita, signing.hold(), key)) == (403, "signature-invalid")


def test_another_organizations_review_gives_no_challenge(cast: Cast, signing: Clinic, key: SoftKey) -> None:
    stranger = cast.person("eve", REVIEWER, organization=cast.other)
    assert begin(cast.session(stranger), signing.hold()).status_code == 404


def test_a_service_gets_no_challenge(cast: Cast, signing: Clinic) -> None:
    assert begin(cast.api("reviews:decide"), signing.hold()).status_code == 403


def test_a_changed_action_or_a_verdict_of_another_kind_gets_no_challenge(
    signing: Clinic, rita: Any, key: SoftKey
) -> None:
    review = signing.hold()
    asked = {"verdict": "approve", "action_digest": "0" * 64}
    assert problem(rita.post(url(review, "signature-challenge"), asked, format="json")) == (412, "digest-changed")
    assert problem(begin(rita, review, "confirm")) == (409, "wrong-state")


def test_what_is_not_base64url_is_named(signing: Clinic, rita: Any, key: SoftKey) -> None:
    review = signing.hold()
    begun = begin(rita, review)
    sent = assertion_json(begun.json()["challenge_id"], Assertion(b"a", b"a", b"a", b"a")) | {"signature": "A"}
    answer = do(rita, review, "approve", signature=sent)
    assert problem(answer) == (400, "invalid-input")
    assert answer.json()["errors"][0]["pointer"] == "/signature/signature"


def test_a_removed_passkey_signs_no_more_and_its_end_is_on_the_ledger(
    cast: Cast, signing: Clinic, rita: Any, key: SoftKey
) -> None:
    review = signing.hold()
    begun = begin(rita, review)
    with every_tenant():
        sign_in_reset(
            actor=cast.actor(cast.administrator, []),
            at=timezone.now(),
            user=cast.reviewer,
            reason_code="planned_maintenance",
            note="Lost phone",
        )
        assert LedgerEntry.objects.filter(action="passkey.removed").count() == 1
        assert Passkey.objects.filter(user=cast.reviewer, removed_at=None).count() == 0
    again = cast.session(cast.reviewer)
    sent = assertion_json(begun.json()["challenge_id"], key.sign(bytes_of(begun)))
    assert problem(do(again, review, "approve", signature=sent)) == (403, "signature-invalid")


def insert_vote(review: Review, user: User) -> ReviewVote:
    """What somebody with the database's password can do."""
    with every_tenant(), transaction.atomic():
        vote = ReviewVote(
            review=review,
            voter_ref=person_commitment(user_id=user.id),
            verdict="approve",
            action_digest=review.action_digest,
            at=timezone.now(),
        )
        vote.save()
    return vote


def test_a_vote_that_was_written_into_the_table_does_not_count(cast: Cast, rita: Any, sam: Any, key: SoftKey) -> None:
    two = Clinic(cast, approvals=2, signature="passkey")
    review = two.hold()
    insert_vote(review, cast.person("sam", REVIEWER))
    card = signed(rita, review, key).json()
    assert (card["status"], card["quorum"]["approvals"]) == ("requested", 1)
    assert [vote["signature"] is None for vote in card["votes"]] == [True, False]


def test_a_signature_copied_from_another_vote_does_not_count_either(
    cast: Cast, signing: Clinic, rita: Any, key: SoftKey
) -> None:
    first, second = signing.hold(), signing.hold()
    assert signed(rita, first, key).status_code == 200
    with every_tenant():
        row = VoteSignature.objects.get(vote__review=first)
        with transaction.atomic(), pytest.raises(RecordImmutable):
            row.delete()
    vote = insert_vote(second, cast.reviewer)
    with every_tenant():
        names = [f.attname for f in VoteSignature._meta.fields if f.attname not in ("id", "vote_id", "nonce")]
        VoteSignature(vote=vote, nonce="f" * 64, **{name: getattr(row, name) for name in names}).save()
    card = rita.get(url(second)).json()
    assert card["votes"][0]["signature"]["signed_by_person"] is False
    assert card["quorum"]["approvals"] == 0


def test_a_new_contract_of_high_risk_asks_for_signatures_where_the_installation_does(cast: Cast, settings: Any) -> None:
    settings.SIGNED_APPROVALS = True

    def asks(slug: str, **core: Any) -> str:
        contract = open_contract(cast, rules=HOLD, slug=slug, **core)
        return str(snapshot_load(contract.snapshot_sha256)["signature"])

    assert asks("high", risk_tier="high") == "passkey"
    assert asks("medium", risk_tier="medium") == "none"
    settings.SIGNED_APPROVALS = False
    assert asks("trial", risk_tier="high") == "none"


def test_the_document_says_it_for_one_contract(cast: Cast, settings: Any) -> None:
    settings.SIGNED_APPROVALS = True
    for value, slug in (("none", "without"), ("passkey", "with")):
        draft = make_contract(cast, slug=f"draft-{slug}")
        with every_tenant():
            document = draft.documents.get(area="attempt_identity_envelope").document
        contract = open_contract(
            cast,
            rules=HOLD,
            slug=slug,
            risk_tier="high",
            documents={"attempt_identity_envelope": document | {"signature": value}},
        )
        assert snapshot_load(contract.snapshot_sha256)["signature"] == value


def test_the_actor_of_a_registration_is_the_person_and_nobody_else_is_named(cast: Cast, key: SoftKey) -> None:
    with every_tenant():
        entry = LedgerEntry.objects.get(action="passkey.registered")
    assert entry.organization_id is None
    assert entry.payload is not None
    assert set(entry.payload) == {"person", "credential_sha256", "algorithm", "public_key", "rp_id"}
    assert text(key.credential_id) not in str(entry.payload)
