"""Signatures under votes: whether a contract asks for them, and which stored votes are signed by their person."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review, ReviewVote, VoteSignature
from governance.contracts.models import Contract
from governance.contracts.states import SignatureKind
from governance.enforcement.models import snapshot_load
from governance.people.rules.passkeys import Assertion, assertion_fault, vote_challenge
from governance.people.selectors.sign_in import KnownPasskey, passkeys_known
from reasoncodes.base.tenancy import every_tenant


def signature_needed(*, attempt: Attempt | None) -> bool:
    """Whether votes on this attempt are signed. A human review of a workflow step has no attempt and asks for none."""
    return attempt is not None and _asks(attempt.contract_id)


@lru_cache(maxsize=4096)
def _asks(contract_id: UUID) -> bool:
    # Cached for good: attempts exist only under a contract that was opened, and its snapshot never changes after that.
    with every_tenant():
        snapshot = Contract.objects.values_list("snapshot_sha256", flat=True).get(id=contract_id)
    # Snapshots from before signatures do not have the field.
    return bool(snapshot_load(snapshot).get("signature") == SignatureKind.PASSKEY)


def review_asks_signature(*, review_id: UUID) -> bool:
    contract = Review.objects.filter(id=review_id).values_list("attempt__contract_id", flat=True).first()
    return contract is not None and _asks(contract)


@dataclass(frozen=True, slots=True)
class VoteSigned:
    """What readers are told about the signature of a vote. `by_person` is false for one that does not stand the
    check."""

    by_person: bool
    registered_at: datetime
    registered_entry: UUID


def votes_signed(*, votes: Sequence[ReviewVote]) -> dict[UUID, VoteSigned]:
    """By vote. Unsigned votes are missing. Every signature is checked again, with the key from the ledger."""
    rows = {row.vote_id: row for row in VoteSignature.objects.filter(vote__in=votes)} if votes else {}
    known = passkeys_known(passkey_ids={row.passkey for row in rows.values()})
    return {
        vote.id: VoteSigned(
            signature_stands(vote=vote, row=rows[vote.id], known=known.get(rows[vote.id].passkey)),
            rows[vote.id].registered_at,
            rows[vote.id].registered_entry,
        )
        for vote in votes
        if vote.id in rows
    }


def signature_stands(*, vote: ReviewVote, row: VoteSignature, known: KnownPasskey | None) -> bool:
    """Whether the voter's own passkey signed exactly this vote."""
    if known is None or known.registered.person != vote.voter_ref or known.entry_id != row.registered_entry:
        return False
    challenge = vote_challenge(
        review=str(vote.review_id), action_digest=vote.action_digest, verdict=vote.verdict, nonce=row.nonce
    )
    return assertion_fault(_assertion(row), challenge=challenge, registered=known.registered) is None


def _assertion(row: VoteSignature) -> Assertion:
    return Assertion(
        bytes(row.credential_id), bytes(row.authenticator_data), bytes(row.client_data_json), bytes(row.signature)
    )
