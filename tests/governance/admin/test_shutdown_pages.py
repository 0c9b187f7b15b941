"""The kill switch in the console: first what it stops, then a reason; a second person releases; a banner everywhere."""

from typing import Any

import pytest

from governance.shutdown.models import Shutdown
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from governance.tenancy.models import Organization
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import browser, page
from tests.governed import AT, open_contract

REASON = {"reason_code": "planned_maintenance", "note": ""}
ADD = page("shutdown", "add")
BANNER = '<section class="hp-banner" aria-label="Engaged shutdowns">'  # not the one of the founding


def engage(cast: Cast, *, by: Any = None, **changes: Any) -> Shutdown:
    values: dict[str, Any] = {
        "scope": ShutdownScope.ORGANIZATION,
        "organization_id": cast.organization.id,
        "reason_code": "planned_maintenance",
    }
    with every_tenant():
        return shutdown_engage(
            actor=cast.actor(by or cast.operator, [cast.organization, cast.other]), at=AT, **(values | changes)
        )


def engaged() -> list[Shutdown]:
    with every_tenant():
        return list(Shutdown.objects.all())


def chosen(cast: Cast, **changes: Any) -> dict[str, Any]:
    return {"scope": "contract", "organization": cast.organization.id, "contract": "close-case"} | changes


def test_choosing_shows_what_it_stops_and_stops_nothing(cast: Cast) -> None:
    open_contract(cast)
    answer = cast.console(cast.operator).get(ADD, chosen(cast))
    assert answer.context["preview"] == {"contracts": 1, "organizations": 1, "named": ["close-case/1"]}
    assert "Stops 1 open contract of 1 organization" in answer.content.decode()
    assert engaged() == []


def test_engaging_needs_a_reason_and_takes_it_from_a_list(cast: Cast) -> None:
    open_contract(cast)
    client = cast.console(cast.operator)
    address = ADD + f"?scope=contract&organization={cast.organization.id}&contract=close-case"
    for data in ({}, {"reason_code": "because"}, {"reason_code": "incident_response", "note": ""}):
        assert client.post(address, data).status_code in {200, 400}
    assert engaged() == []
    assert client.post(address, REASON).status_code == 302
    (row,) = engaged()
    assert (row.scope, row.target, row.drill, row.preview["contracts"]) == ("contract", "close-case", False, 1)


def test_a_note_that_must_not_enter_the_record_is_refused(cast: Cast) -> None:
    address = ADD + f"?scope=organization&organization={cast.organization.id}"
    data = {"reason_code": "incident_response", "note": "ask john.smith@example.org"}
    answer = cast.console(cast.operator).post(address, data)
    assert answer.status_code == 422
    assert "john.smith" not in answer.content.decode().split("hp-problems")[1].split("</ul>")[0]
    assert engaged() == []


@pytest.mark.parametrize(
    "query",
    [
        {"scope": "contract", "contract": ""},
        {"scope": "connector"},
        {"scope": "nonsense"},
        {"scope": "connector", "connector": "x"},
    ],
)
def test_an_incomplete_choice_stays_on_the_first_step(cast: Cast, query: dict[str, str]) -> None:
    client = cast.console(cast.operator)
    wanted = {"organization": cast.organization.id} | query
    assert client.get(ADD, wanted).context["step"] == 1
    address = ADD + "?" + "&".join(f"{name}={value}" for name, value in wanted.items())
    assert client.post(address, REASON).status_code == 400
    assert engaged() == []


def test_a_contract_that_does_not_exist_is_refused_with_the_place(cast: Cast) -> None:
    address = ADD + f"?scope=contract&organization={cast.organization.id}&contract=nothing"
    answer = cast.console(cast.operator).post(address, REASON)
    assert answer.status_code == 400
    assert "/target" in answer.content.decode()


@pytest.mark.parametrize("query", ["scope=global", "scope=region&region=US"])
def test_wide_scopes_are_for_administrators_of_the_installation(cast: Cast, query: str) -> None:
    assert cast.console(cast.operator).post(f"{ADD}?{query}", REASON).status_code == 400
    html = cast.console(cast.operator).get(ADD).content.decode()
    assert 'value="global"' not in html
    assert engaged() == []
    assert cast.console(cast.administrator).post(f"{ADD}?{query}", REASON).status_code == 302
    assert engaged()[0].organization_id is None


def test_a_drill_is_recorded_and_raises_no_banner(cast: Cast) -> None:
    address = ADD + f"?scope=organization&organization={cast.organization.id}"
    answer = cast.console(cast.operator).post(address, REASON | {"drill": "on"}, follow=True)
    assert engaged()[0].drill
    assert "engaged (drill)" in answer.content.decode()
    assert BANNER not in answer.content.decode()


def test_whoever_engaged_it_does_not_release_it(cast: Cast) -> None:
    row = engage(cast)
    client = cast.console(cast.operator)
    release = page("shutdown", row.id, "act", "release")
    assert "A second person has to release it" in client.get(release).content.decode()
    answer = client.post(release, {"note": ""})
    assert answer.status_code == 403
    assert "A second person has to do this" in answer.content.decode()
    assert engaged()[0].state == "engaged"
    with every_tenant():
        assert GovernanceViolation.objects.get().kind == "second_person_missing"
    second = cast.console(cast.person("sven", "operator"))
    assert second.post(release, {"note": "It is over"}).status_code == 302
    assert engaged()[0].state == "released"
    assert second.post(release, {"note": ""}).status_code == 409


def test_an_operator_does_not_release_what_an_administrator_stopped_everywhere(cast: Cast) -> None:
    row = engage(cast, by=cast.administrator, scope=ShutdownScope.GLOBAL, organization_id=None, installation=True)
    release = page("shutdown", row.id, "act", "release")
    assert cast.console(cast.operator).post(release, {"note": ""}).status_code == 403
    assert engaged()[0].state == "engaged"


# -- the banner -------------------------------------------------------------------------------------------------------
def has_banner(cast: Cast, who: str, address: str = "/admin/governance/contract/") -> bool:
    return BANNER in browser(cast, who).get(address).content.decode()


def test_an_engaged_shutdown_is_on_every_page_of_everybody_it_concerns(cast: Cast) -> None:
    engage(cast)
    for who in ("operator", "auditor", "owner", "reviewer", "administrator"):
        assert has_banner(cast, who), who
    assert not has_banner(cast, "stranger")
    for address in ("/admin/", ADD, page("policy"), page("policy", "add"), page("organization")):
        assert has_banner(cast, "operator", address), address


def test_the_banner_goes_when_it_is_released(cast: Cast) -> None:
    row = engage(cast)
    cast.console(cast.person("sven", "operator")).post(page("shutdown", row.id, "act", "release"), {"note": ""})
    assert not has_banner(cast, "operator")


def test_a_region_is_the_business_of_those_who_have_it(cast: Cast) -> None:
    with every_tenant():
        Organization.objects.filter(id=cast.other.id).update(regions=["EU"])
    engage(
        cast,
        by=cast.administrator,
        scope=ShutdownScope.REGION,
        organization_id=None,
        target="EU",
        installation=True,
    )
    assert has_banner(cast, "stranger")
    assert not has_banner(cast, "operator")
    assert has_banner(cast, "administrator")


def test_the_login_page_shows_no_banner_and_works(cast: Cast) -> None:
    engage(cast)
    answer = browser(cast, "anonymous").get("/admin/login/")
    assert answer.status_code == 200
    assert "hp-banner" not in answer.content.decode()
