"""The mail of a reminder. It names the review and its deadline, and nothing of what is asked for."""

from uuid import UUID

import structlog
from django.core.mail import EmailMessage, get_connection

from attempts.models import Review
from attempts.selectors.review_people import reminder_people
from attempts.states import ReviewKind, ReviewStatus
from reasoncodes.tenancy import every_tenant

log = structlog.get_logger("holdpoint.reviews")
BODY = """A review of the tier {tier} waits for a decision until {until} UTC.
After that it expires, and {otherwise}.

Review: {review}
{why}"""
OTHERWISE = {
    ReviewKind.RELEASE: "what was asked for is denied",
    ReviewKind.HUMAN_REVIEW: "the workflow goes on without a judgement, or stops",
}
ESCALATED = "You get this as an operator: nobody has claimed it, or too few reviewers are left who may decide.\n"


def review_reminder_send(*, review_id: UUID) -> int:
    """One message per person, so that nobody sees another's address. Late or twice it does no harm."""
    with every_tenant():
        review = Review.objects.select_related("attempt__caller").filter(id=review_id).first()
        if review is None or review.status != ReviewStatus.REQUESTED:
            return 0
        people = reminder_people(review=review, attempt=review.attempt)
    mails = [_mail(review, person.email, "") for person in people.reviewers if person.email]
    mails += [_mail(review, person.email, ESCALATED) for person in people.operators if person.email]
    try:
        return int(get_connection().send_messages(mails) or 0) if mails else 0
    except OSError as error:  # the queue shows the review anyway; a mail server that is away must not hide the log line
        log.warning("reminder_not_sent", review_id=str(review_id), exc_info=error)
        return 0


def _mail(review: Review, address: str, why: str) -> EmailMessage:
    until = f"{review.expires_at:%Y-%m-%d %H:%M}"
    tiers = " and ".join(part["tier"] for part in review.parts)
    otherwise = OTHERWISE[ReviewKind(review.kind)]
    text = BODY.format(tier=tiers, until=until, review=review.id, why=why, otherwise=otherwise)
    return EmailMessage(subject=f"A review waits until {until} UTC", body=text, to=[address])
