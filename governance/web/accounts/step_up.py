"""Step-up: a decision of weight needs somebody who proved a moment ago who they are, not just an open session."""

from datetime import datetime, timedelta
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records
from django.conf import settings
from django.urls import reverse
from django.utils.http import urlencode


def signed_in_recently(request: Any, *, at: datetime) -> bool:
    """A person's request, of a page or of the API: by password, code or passkey, within HOLDPOINT_STEP_UP_MINUTES."""
    records = get_authentication_records(request, request.user)
    newest = max((record.get("at", 0) for record in records), default=0)
    return at.timestamp() - newest < timedelta(minutes=settings.STEP_UP_MINUTES).total_seconds()


def step_up_url(*, back: str) -> str:
    """Where the person proves it again; `back` is where they go on."""
    return reverse("account_reauthenticate") + "?" + urlencode({"next": back})
