"""At 80 % of the cap on open holds operators and readiness owners are told, once a day."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from attempts.notify.models import HoldsNotice
from attempts.notify.services.holds_full import holds_warn
from attempts.notify.tasks import holds_warn_task
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.cast import Cast
from tests.governed import HOLD


@pytest.fixture
def held(cast: Cast) -> Cast:
    """Three of five holds are open, and the people have addresses."""
    contract(cast, rules=HOLD, adapter="external")
    for person in (cast.operator, cast.owner, cast.reviewer):
        person.email = f"{person.username}@example.test"
        person.save(update_fields=["email"])
    with every_tenant():
        Organization.objects.filter(id=cast.organization.id).update(max_open_holds=5)
    caller = cast.api("attempts:create")
    for number in range(1, 4):
        assert ask(caller, number, connector="external").status_code == 202
    return cast


def test_operators_and_owners_are_told_once_a_day_from_eighty_parts_of_a_hundred_on(held: Cast) -> None:
    holds_warn_task()
    assert mail.outbox == []
    assert ask(held.api("attempts:create"), 4, connector="external").status_code == 202
    holds_warn_task()
    holds_warn_task()
    assert {address for one in mail.outbox for address in one.to} == {held.operator.email, held.owner.email}
    assert mail.outbox[0].subject == "4 of 5 open holds in clinic"
    assert "the oldest since" in mail.outbox[0].body
    sent = len(mail.outbox)
    holds_warn(now=lambda: timezone.now() + timedelta(days=1), base_url="https://holdpoint.test")
    assert len(mail.outbox) == 2 * sent
    with every_tenant():
        assert HoldsNotice.objects.filter(organization=held.organization).count() == 2


def test_the_overview_says_how_many_and_since_when(held: Cast) -> None:
    console = held.console(held.operator)
    assert "open holds" not in console.get("/admin/").content.decode()
    assert ask(held.api("attempts:create"), 4, connector="external").status_code == 202
    assert "clinic: 4 of 5 open holds, the oldest since" in console.get("/admin/").content.decode()
