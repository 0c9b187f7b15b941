"""The card of a task: facts, the form's fields, one button per outcome, and what is wrong beside its field."""

import pytest
from playwright.sync_api import expect

from tests.browser.site import PHONE, People, Site, axe

pytestmark = [pytest.mark.browser, pytest.mark.stack]
OPEN = """
from datetime import timedelta
from uuid import uuid4
from django.db import transaction
from django.utils import timezone
from attempts.reviews.services.human_task import TaskAsked, human_task_open
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
fields = {
    "cause": {"enum": ["damaged", "late", "other"]},
    "share": {"type": "integer", "minimum": 1, "maximum": 100},
    "checked": {"type": "boolean"},
    "since": {"type": "string", "format": "date"},
    "ref": {"type": "string", "maxLength": 20},
}
form = {"type": "object", "additionalProperties": False, "required": ["cause", "share"], "properties": fields}
facts = {"amount_cents": 123456, "currency": "EUR", "order": "o-" + uuid4().hex[:8], "ordered": "2026-11-01"}
outcomes = ["approve", "reject", "ask_again"]
shown = {"title": "Release a refund", "facts": facts, "form": form, "outcomes": outcomes, "approvals": 1}
at = timezone.now()
asked = TaskAsked(
    organization_id=Organization.objects.get(slug="demo").id,
    origin_step=uuid4(),
    tier="customer_clinician",
    step_kind="human_task",
    shown=shown,
    digest=uuid4().hex * 2,
    context_ref="case/4711",
    expires_at=at + timedelta(days=1),
    due_at=at - timedelta(hours=1),
)
with transaction.atomic():
    print(human_task_open(asked=asked, actor=SYSTEM, at=at).id)
"""


def test_a_task_is_filled_in_corrected_and_answered_by_one_of_its_buttons(site: Site, people: People) -> None:
    review = site.shell(OPEN).splitlines()[-1]
    page = people.page("reviewer")
    page.goto(f"/review/{review}")
    card = page.locator("#card")
    expect(card.get_by_role("heading", name="Release a refund")).to_be_visible()
    expect(card.locator(".fact").first).to_have_text("1,234.56 EUR")
    expect(card.locator(".badge.late")).to_have_text("overdue")
    card.get_by_label("Share").fill("101")
    card.get_by_role("heading", name="Release a refund").focus()
    page.keyboard.press("a")
    expect(card.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")
    expect(card.locator("#form-cause-error")).to_have_text("is required")
    expect(card.locator("#form-share-error")).to_have_text("must be at most 100")
    expect(card.get_by_label("Share")).to_have_value("101")
    card.get_by_label("Cause").select_option("late")
    card.get_by_label("Share").fill("50")
    card.get_by_label("Checked").select_option("yes")
    card.get_by_label("Since").fill("2026-11-02")
    assert axe(page) == []
    card.get_by_role("button", name="Ask again").click()
    expect(page.locator(".notice")).to_have_text("Decided: case/4711.")
    page.goto(f"/review/{review}?view=history")
    expect(card.locator(".outcome")).to_contain_text("Decided: ask again, by reviewer.")
    expect(card.locator(".votes")).to_contain_text("cause: late")


def test_on_a_phone_nothing_of_the_form_is_wider_than_the_page(site: Site, people: People) -> None:
    review = site.shell(OPEN).splitlines()[-1]
    page = people.page("reviewer2", viewport=PHONE, color_scheme="dark")
    page.goto(f"/review/{review}")
    expect(page.get_by_role("button", name="Reject")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert axe(page) == []
