"""What the settings say about authority."""

from datetime import timedelta

from django.conf import settings


def confirm_drill_period() -> timedelta:
    """How long ago a second person may have confirmed something before the drill names them. Zero: no drill."""
    return timedelta(days=settings.CONFIRM_DRILL_DAYS)
