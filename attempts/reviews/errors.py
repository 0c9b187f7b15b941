"""Errors of reviews. Deciding on one's own request is governance.violations.errors.OwnWork."""

from governance.violations.errors import RuleBroken
from governance.violations.states import ViolationKind
from reasoncodes.base.errors import DomainError


class NotAReviewer(RuleBroken):
    """Only a reviewer of this tier can decide here or delegate it.

    The review names its tier. Ask an operator for the role. A delegation does not replace it: a tier can be delegated
    only to somebody who has it. Holdpoint has recorded that you tried.
    """

    code = "not-a-reviewer"
    status = 403
    title = "Not a reviewer of this tier"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class NotAssigned(RuleBroken):
    """The workflow assigned this task to another person of the tier.

    The card names who can still decide. If that person is away, an operator can halt the run and go on another way;
    otherwise the task expires. Holdpoint has recorded that you tried.
    """

    code = "not-assigned"
    status = 403
    title = "Assigned to somebody else"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class AlreadyVoted(RuleBroken):
    """Each person has one vote in a review, also if they stand in for somebody.

    If two approvals are needed, two different people have to give them. Ask another reviewer of the tier.
    """

    code = "already-voted"
    status = 409
    title = "Voted already"
    violation = ViolationKind.SECOND_PERSON_MISSING


class TierComplete(DomainError):
    """Enough people of your tier have signed; only signatures of other tiers are still missing.

    The review shows which signatures are missing and who can sign. You can still reject while the review is open.
    """

    code = "tier-complete"
    status = 409
    title = "Your tier has signed"


class ReviewOver(RuleBroken):
    """This review has ended, so nobody can decide on it any more.

    Somebody else may have decided before you. Read the review again: its votes show what was decided.
    """

    code = "review-over"
    status = 409
    title = "The review is over"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class ReviewExpired(RuleBroken):
    """The deadline of this review has passed, so the action is denied. Expiry never approves.

    The database's clock decides, even if no page shows the expiry yet. The caller can send a new request.
    """

    code = "review-expired"
    status = 409
    title = "The review has expired"
    default_reason_code = "review_expired"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class DigestChanged(DomainError):
    """The proposal has changed since you read it. Nothing was decided.

    Read the review again and check what is proposed now, then decide. A program sends the `action_digest` that it read
    with its decision.
    """

    code = "digest-changed"
    status = 412
    title = "The proposal changed"


class ReviewClaimed(DomainError):
    """Somebody else has claimed this review and is deciding on it.

    A claim lasts 15 minutes unless it is renewed. Wait until it ends, or ask them to release it.
    """

    code = "review-claimed"
    status = 409
    title = "Claimed by somebody else"


class ReleaseBlocked(DomainError):
    """The action cannot be released now: its contract is closed, or a shutdown covers it.

    `reason_code` says which. You can always reject. You can approve once the contract is open again or the shutdown is
    released, if the review has not expired by then.
    """

    code = "release-blocked"
    status = 409
    title = "Nothing can be released now"


class BulkTooWide(DomainError):
    """You can answer actions together only if they share one contract and have low risk.

    Choose fewer: one contract, low risk, at most a hundred. Decide everything else one by one, on its card.
    """

    code = "bulk-too-wide"
    status = 409
    title = "Too wide for one answer"


class SignatureNeeded(DomainError):
    """The contract asks for a signature with a passkey under every vote, and this vote has none that counts.

    Decide on the review's card: it asks for your passkey and casts the vote at once. If you have no passkey yet, add
    one under "Second factor and passkeys"; one that you added before signatures existed has to be removed and added
    again. A program gets a challenge with `POST /reviews/{id}/signature-challenge`, valid once and for five minutes.
    """

    code = "signature-needed"
    status = 403
    title = "A signature is needed"


class SignatureInvalid(RuleBroken):
    """The signature under this vote is not yours, or it is for something else. Nothing was decided.

    A signature counts for one review, one action, one verdict and one person, once. Read the review again and sign it
    on its card. If you did not send this vote, end your sessions and tell an operator. Holdpoint has recorded it.
    """

    code = "signature-invalid"
    status = 403
    title = "The signature is not valid"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class StepUpNeeded(DomainError):
    """To decide on a high-risk action, you have to confirm first that it is you.

    Confirm with your password, a code or a passkey, then decide. Nothing was decided yet.
    """

    code = "step-up-needed"
    status = 403
    title = "Prove that it is you"


class DelegateWithoutTier(RuleBroken):
    """A tier can be delegated only to somebody who has it too.

    Otherwise a delegation would give a person a vote that nobody gave them. Choose one of the people that
    `GET /api/v1/delegations/candidates` lists, or ask an operator for the role. Holdpoint has recorded that you tried.
    """

    code = "delegate-without-tier"
    status = 403
    title = "They do not have this tier"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class DelegateAway(DomainError):
    """This person has delegated the tier themselves, so they would not be there.

    Delegations are not passed on. Choose somebody else, or wait until theirs has ended.
    """

    code = "delegate-away"
    status = 409
    title = "They are away themselves"


class DelegationExists(DomainError):
    """You have delegated this tier already, now or for a later time.

    One person stands in for you at a time. End that delegation first, then make a new one.
    """

    code = "delegation-exists"
    status = 409
    title = "Delegated already"


class NotYourDelegation(RuleBroken):
    """Only the two people of a delegation and the operators of the organization can end it.

    Ask one of them. Holdpoint has recorded that you tried.
    """

    code = "not-your-delegation"
    status = 403
    title = "Not your delegation"
    violation = ViolationKind.UNAUTHORIZED_DECISION
