"""Refusals of people's decisions. Deciding on one's own request is governance.errors.OwnWork."""

from governance.errors import RuleBroken
from governance.states import ViolationKind
from reasoncodes.errors import DomainError


class NotAReviewer(RuleBroken):
    """Only somebody with the reviewer role of this tier, or with a delegation from one, may decide here.

    The review names its tier. Ask an operator for the role, or a reviewer of the tier for a delegation. The attempt to
    decide is on record.
    """

    code = "not-a-reviewer"
    status = 403
    title = "Not a reviewer of this tier"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class AlreadyVoted(RuleBroken):
    """One person has one voice in a review, in their own name or through a delegate.

    Where two approvals are needed they come from two different people. Ask another reviewer of the tier.
    """

    code = "already-voted"
    status = 409
    title = "Voted already"
    violation = ViolationKind.SECOND_PERSON_MISSING


class TierComplete(DomainError):
    """Enough people of your tier have signed; the signatures that are missing are of other tiers.

    The review shows what is missing and who may still sign. Rejecting is possible as long as the review is open.
    """

    code = "tier-complete"
    status = 409
    title = "Your tier has signed"


class ReviewOver(RuleBroken):
    """This review has ended, so nobody decides on it any more.

    Somebody may have been faster. Read the review again; its votes say what was decided.
    """

    code = "review-over"
    status = 409
    title = "The review is over"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class ReviewExpired(RuleBroken):
    """The deadline of this review has passed. Expiry denies; it never approves.

    The deadline counts by the database's clock, whether or not anything has noticed it yet. The caller may ask again.
    """

    code = "review-expired"
    status = 409
    title = "The review has expired"
    default_reason_code = "review_expired"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class DigestChanged(DomainError):
    """What you decided on is not what is proposed: the digest of the action differs.

    Read the review again, look at what is asked for now, and send its `action_digest` back with your decision.
    """

    code = "digest-changed"
    status = 412
    title = "The proposal changed"


class ReviewClaimed(DomainError):
    """Somebody else has claimed this review and is deciding on it.

    A claim lasts 15 minutes unless it is renewed. Wait for it to end, or ask them to release it.
    """

    code = "review-claimed"
    status = 409
    title = "Claimed by somebody else"


class ReleaseBlocked(DomainError):
    """The action cannot be released now: its contract is closed, or a shutdown covers it.

    `reason_code` says which. Rejecting is always possible; approving is possible again when the obstacle is gone and
    the review has not expired.
    """

    code = "release-blocked"
    status = 409
    title = "Nothing can be released now"


class BulkTooWide(DomainError):
    """Only held actions of one contract and of the low risk tier are answered together.

    Choose fewer: one contract, low risk, at most a hundred. Everything else is decided one by one, on its card.
    """

    code = "bulk-too-wide"
    status = 409
    title = "Too wide for one answer"


class StepUpNeeded(DomainError):
    """A decision on an action of the high risk tier needs somebody who signed in a moment ago.

    Prove again who you are, by password, code or passkey, and decide then. Nothing was decided.
    """

    code = "step-up-needed"
    status = 403
    title = "Prove that it is you"
