"""The section of the card that says that an attempt was released before, and why people are asked again."""

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import review_before
from attempts.reviews.web.panels import Panel


def held_again_panel(review: Review, attempt: Attempt | None) -> Panel | None:
    """None for the review that an attempt got when it came in."""
    if attempt is None or review.decision_id in {None, attempt.decision_id}:
        return None
    context = {"before": review_before(review=review), "tried": attempt.tries}
    return Panel("Held again", "review/panels/held_again.html", context)
