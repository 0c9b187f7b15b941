"""The section of the card that says that an effect was asked for twice."""

from attempts.intake.selectors import asked_before
from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from attempts.reviews.web.panels import Panel


def asked_before_panel(review: Review, attempt: Attempt | None) -> Panel | None:
    """None if nobody asked for it before, or the contract does not recognise effects."""
    asked = asked_before(attempt=attempt) if attempt is not None else []
    return Panel("Asked twice", "review/panels/asked_before.html", {"asked": asked}) if asked else None
