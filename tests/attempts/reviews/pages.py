"""Words of the tests of the review pages: a browser without scripts, and one whose htmx asks."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.test import Client

from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import database_now
from governance.people.models import User
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import DECLINE, REJECT, TIER
from tests.cast import Cast

HX = {"HX-Request": "true"}


def browser(user: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


DELEGATE = {"to_username": "dora", "hours": "24", "reason_code": "reviewer_away"}


def page(review: Review, verb: str = "", query: str = "") -> str:
    return f"/review/{review.id}" + (f"/{verb}" if verb else "") + (f"?{query}" if query else "")


def form(review: Review, verb: str, **changes: str) -> dict[str, str]:
    more = {"reject": REJECT, "decline": DECLINE, "delegate": DELEGATE}.get(verb, {})
    return {"action_digest": review.action_digest, "queue": "view=groups"} | more | changes


def answer(client: Client, review: Review, verb: str, *, hx: bool = False, **changes: str) -> Any:
    return client.post(page(review, verb), form(review, verb, **changes), headers=HX if hx else {})


def shown(client: Client, query: str = "") -> list[str]:
    """The ids on a page of the queue, in their order."""
    found = client.get(f"/review/?{query}")
    assert found.status_code == 200, found.content
    return [str(row.id) for row in found.context["rows"]]


def many_cases(cast: Cast, count: int, *, minutes: int = 60, step: int = 1) -> list[Review]:
    """Open human reviews with different deadlines, put there directly: only the queue reads them."""
    now = database_now()
    rows = [
        Review(
            organization=cast.organization,
            kind="human_review",
            origin_step=uuid4(),
            subject_ref=f"case-{number:05}",
            label="Check",
            tier=TIER,
            approvals_required=1,
            action_digest="d" * 64,
            requested_at=now,
            expires_at=now + timedelta(minutes=minutes + number * step),
        )
        for number in range(count)
    ]
    with every_tenant():
        return Review.objects.bulk_create(rows)
