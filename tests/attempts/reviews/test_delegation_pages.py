"""The page of one's delegations, and the console's list for operators."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from attempts.reviews.models import Delegation
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.pages import answer, browser
from tests.attempts.reviews.support import REVIEWER, TIER, Clinic, violations
from tests.cast import Cast

PAGE = "/review/delegations"


@pytest.fixture
def dora(cast: Cast) -> Any:
    return browser(cast.person("dora", REVIEWER))


@pytest.fixture
def rita(cast: Cast) -> Any:
    return browser(cast.reviewer)


def posted(cast: Cast, **changes: str) -> dict[str, str]:
    ends = timezone.now() + timedelta(days=2)
    to = f"{cast.organization.id}|{TIER}|dora"
    return {"to": to, "reason_code": "handover", "starts_at": "", "ends_at": f"{ends:%Y-%m-%dT%H:%M}"} | changes


def words(client: Any, address: str = PAGE) -> str:
    return client.get(address, follow=True).content.decode()


def rows() -> list[Delegation]:
    with every_tenant():
        return list(Delegation.objects.order_by("id"))


def test_a_reviewer_chooses_from_a_list_and_both_sides_see_it(cast: Cast, rita: Any, dora: Any) -> None:
    assert "Nobody stands in for you, and you stand in for nobody." in words(rita)
    assert f'value="{cast.organization.id}|{TIER}|dora"' in words(rita)
    assert rita.post(PAGE, posted(cast)).status_code == 302
    assert "<strong>dora stands in for you</strong>" in words(rita)
    assert "<strong>You stand in for rita</strong>" in words(dora)
    assert "delegated already" in words(rita)
    assert "rita" not in words(browser(cast.person("emil", REVIEWER)))


def test_either_side_ends_it_on_the_page(cast: Cast, rita: Any, dora: Any) -> None:
    rita.post(PAGE, posted(cast))
    row = rows()[0]
    assert dora.post(f"{PAGE}/{row.id}/end").status_code == 302
    assert "<strong>dora stood in for you</strong>" in words(rita)
    assert "ended by dora" in words(rita)
    assert rows()[0].end_cause == "by_delegate"
    assert rita.post(f"{PAGE}/{row.id}/end").status_code == 409


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"to": "dora"}, 400, "Choose from the list."),
        ({"ends_at": ""}, 400, "This field is required."),
        ({"ends_at": "2020-01-01T08:00"}, 400, "from 15 minutes to 14 days after the beginning"),
        ({"reason_code": "no_such"}, 400, "The reason code does not exist"),
    ],
)
def test_a_refusal_is_shown_beside_the_form(
    cast: Cast, rita: Any, dora: Any, changes: dict[str, str], status: int, said: str
) -> None:
    found = rita.post(PAGE, posted(cast, **changes))
    assert found.status_code == status
    assert said in found.content.decode()
    assert rows() == []


def test_a_forged_choice_is_refused_and_on_record(cast: Cast, rita: Any) -> None:
    cast.person("quinn", "reviewer:sa_qa")
    forged = rita.post(PAGE, posted(cast, to=f"{cast.organization.id}|{TIER}|quinn"))
    assert forged.status_code == 403
    other = rita.post(PAGE, posted(cast, to=f"{cast.other.id}|{TIER}|quinn"))
    assert other.status_code == 404
    assert violations() == ["unauthorized_decision", "cross_tenant"]


def test_who_has_no_tier_sees_no_form(cast: Cast) -> None:
    found = words(browser(cast.person("otto", "operator")))
    assert 'name="ends_at"' not in found
    assert browser(cast.nobody).get(PAGE).status_code == 403


def test_a_long_history_is_paged(cast: Cast, rita: Any, dora: Any) -> None:
    now = timezone.now()
    with every_tenant():
        for number in range(32):
            Delegation.objects.create(
                organization=cast.organization,
                tier=TIER,
                from_user=cast.reviewer,
                to_user=cast.person("dora"),
                reason_code="handover",
                created_at=now,
                starts_at=now - timedelta(days=number + 2),
                ends_at=now - timedelta(days=number + 1),
                ended_at=now - timedelta(days=number + 1),
                end_cause="ran_out",
            )
    first = words(rita)
    assert first.count("dora stood in for you") == 30
    older = first.split(f'href="{PAGE}?before=')[1].split('"')[0]
    assert words(rita, f"{PAGE}?before={older}").count("dora stood in for you") == 2
    assert rita.get(f"{PAGE}?before=x").status_code == 400


def test_the_card_leads_to_the_page_which_offers_only_people_of_the_tier(
    cast: Cast, clinic: Clinic, rita: Any, dora: Any
) -> None:
    cast.person("quinn", "reviewer:sa_qa")
    review = clinic.hold()
    assert f'<a class="link" href="{PAGE}">Delegate</a>' in words(rita, f"/review/{review.id}")
    assert "quinn" not in words(rita)
    answer(rita, review, "delegate")
    assert "You stand in for rita" in words(dora, f"/review/{review.id}")


def staff(cast: Cast, user: Any) -> Any:
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    return cast.console(user)


def test_operators_see_all_and_end_one(cast: Cast, rita: Any, dora: Any) -> None:
    rita.post(PAGE, posted(cast))
    row = rows()[0]
    alice, audrey = staff(cast, cast.operator), staff(cast, cast.auditor)
    address = f"/admin/attempts/delegation/{row.id}/act/end/"
    for client in (alice, audrey):
        assert "dora" in words(client, "/admin/attempts/delegation/")
    assert "dora" in words(alice, "/admin/attempts/delegation/?state=active")
    assert audrey.post(address).status_code == 403
    stranger = staff(cast, cast.other_operator)
    assert stranger.post(address).status_code == 404
    assert alice.post(address).status_code == 302
    assert rows()[0].end_cause == "by_operator"
    assert "dora" not in words(alice, "/admin/attempts/delegation/?state=active").split("result_list")[-1]
