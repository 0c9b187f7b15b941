"""Reviewer tiers and products of an organization's own: by API and console, and what they give (nothing)."""

from typing import Any

import pytest

from governance.ledger.models import LedgerEntry
from governance.people.rules.roles import REVIEW
from governance.people.selectors.people import organizations_where
from governance.policies.selectors import reviewer_tiers
from governance.tenancy.models import ReviewerTier, RoleGroup
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.models import ReasonCode
from reasoncodes.selectors import reason_code_resolve
from tests.cast import Cast
from tests.config.test_problems import check

URL, PRODUCTS, CODES = "/api/v1/review-tiers", "/api/v1/products", "/api/v1/reason-codes"
FINANCE = {"slug": "finance", "label": "Finance"}


def test_a_new_tier_can_be_named_at_once_and_gives_nobody_anything(cast: Cast) -> None:
    api = cast.api("orchestrator:read", "orchestrator:write")
    made = api.post(URL, FINANCE | {"description": "Releases refunds."})
    assert (made.status_code, made.json()["role"], made.json()["active"]) == (201, "reviewer:finance", True)
    assert {"finance", "approvers"} <= {row["slug"] for row in api.get(URL, {"active": "true"}).json()["results"]}
    with every_tenant():
        assert "finance" in reviewer_tiers(organization_id=cast.organization.id)
        group = RoleGroup.objects.get(organization=cast.organization, role="reviewer:finance").group
        assert not group.user_set.exists()
        assert LedgerEntry.objects.get(action="review_tier.created").payload["slug"] == "finance"
    check(api.post(URL, FINANCE), status=409, code="already-exists")
    for slug in ("Finance", "-finance", "f" * 55, ""):
        check(api.post(URL, FINANCE | {"slug": slug}), status=400, code="invalid-input")


def test_the_tier_is_given_by_two_people_and_only_while_it_is_active(cast: Cast) -> None:
    alice, amir = cast.session(cast.operator), cast.fresh(cast.session(cast.second_operator))
    proposal = {"kind": "role.give", "subject": cast.nobody.username, "details": {"role": "reviewer:finance"}}
    check(alice.post("/api/v1/authority-changes", proposal), status=400, code="invalid-input")
    tier = alice.post(URL, FINANCE).json()["id"]
    change = alice.post("/api/v1/authority-changes", proposal).json()["id"]
    assert alice.patch(f"{URL}/{tier}", {"active": False}).json()["active"] is False
    assert amir.post(f"/api/v1/authority-changes/{change}/confirm").status_code == 409
    assert organizations_where(user=cast.nobody, permission=REVIEW) == frozenset()
    assert alice.patch(f"{URL}/{tier}", {"active": True}).status_code == 200
    change = alice.post("/api/v1/authority-changes", proposal).json()["id"]
    assert amir.post(f"/api/v1/authority-changes/{change}/confirm").json()["state"] == "in_force"
    assert organizations_where(user=cast.nobody, permission=REVIEW) == {cast.organization.id}


def test_of_a_deactivated_tier_nothing_new_is_asked(cast: Cast) -> None:
    api = cast.api("orchestrator:read", "orchestrator:write")
    tier = api.post(URL, FINANCE).json()["id"]
    assert api.patch(f"{URL}/{tier}", {"label": "Finance team"}).json()["label"] == "Finance team"
    for _ in range(2):
        assert api.delete(f"{URL}/{tier}").status_code == 204
    assert api.get(f"{URL}/{tier}").json()["active"] is False
    with every_tenant():
        assert "finance" not in reviewer_tiers(organization_id=cast.organization.id)
        actions = LedgerEntry.objects.filter(action__startswith="review_tier.").order_by("id")
        assert [entry.action for entry in actions] == [
            "review_tier.created",
            "review_tier.changed",
            "review_tier.deactivated",
        ]
    check(api.patch(f"{URL}/{tier}", {"slug": "other"}), status=400, code="invalid-input")


@pytest.mark.parametrize(
    ("url", "body", "change"),
    [(URL, FINANCE, {"label": "x"}), (PRODUCTS, {"slug": "refunds", "name": "Refunds"}, {"name": "x"})],
)
def test_strangers_and_the_wrong_role_change_nothing(
    cast: Cast, url: str, body: dict[str, str], change: dict[str, str]
) -> None:
    made = cast.session(cast.operator).post(url, body).json()["id"]
    for client in (cast.session(cast.reviewer), cast.session(cast.auditor), cast.api("orchestrator:read")):
        assert client.get(f"{url}/{made}").status_code == 200
        assert client.post(url, body | {"slug": "another"}).status_code == 403
        assert client.patch(f"{url}/{made}", change).status_code == 403
    stranger = cast.api("orchestrator:read", "orchestrator:write", organization=cast.other)
    check(stranger.get(f"{url}/{made}"), status=404, code="not-found")
    check(stranger.patch(f"{url}/{made}", change), status=404, code="not-found")
    check(stranger.post(url, body | {"org_id": str(cast.organization.id)}), status=404, code="not-found")
    assert made not in {row["id"] for row in stranger.get(url).json()["results"]}


def test_a_product_can_be_renamed_and_keeps_its_slug(cast: Cast) -> None:
    api = cast.api("orchestrator:read", "orchestrator:write")
    made = api.post(PRODUCTS, {"slug": "refunds", "name": "Refunds"})
    assert made.status_code == 201
    for _ in range(2):
        assert api.patch(f"{PRODUCTS}/{made.json()['id']}", {"name": "Returns"}).json()["slug"] == "refunds"
    check(api.patch(f"{PRODUCTS}/{made.json()['id']}", {"slug": "x"}), status=400, code="invalid-input")
    with every_tenant():
        assert LedgerEntry.objects.filter(action="product.changed").count() == 1


def test_the_console_creates_renames_and_deactivates_a_tier(cast: Cast) -> None:
    console = cast.console(cast.operator)
    base = "/admin/governance/reviewertier"
    given = {"organization": str(cast.organization.id), "slug": "night", "label": "Night", "description": ""}
    assert console.post(f"{base}/add/", given).status_code == 302
    with every_tenant():
        tier = ReviewerTier.objects.get(slug="night")
    assert console.post(f"{base}/{tier.id}/change/", {"label": "Night shift", "description": ""}).status_code == 302
    assert console.post(f"{base}/{tier.id}/act/deactivate/", {}).status_code == 302
    with every_tenant():
        tier.refresh_from_db()
    assert (tier.label, tier.active) == ("Night shift", False)


def test_an_override_of_a_system_code_can_be_taken_back(cast: Cast) -> None:
    api = cast.api("orchestrator:read", "orchestrator:write")
    override = {"scope": "halt", "code": "consent_missing", "label": "No consent form"}
    made = api.post(CODES, override).json()
    own = api.post(CODES, {"scope": "halt", "code": "ours", "label": "Ours"}).json()
    with every_tenant():
        system = ReasonCode.objects.get(organization=None, scope="halt", code="consent_missing")

    def meant() -> Any:
        with every_tenant():
            found = reason_code_resolve(organization_id=cast.organization.id, scope="halt", code="consent_missing")
        return found and found.label

    assert meant() == "No consent form"
    stranger = cast.api("orchestrator:write", organization=cast.other)
    check(stranger.post(f"{CODES}/{made['id']}/take-back"), status=404, code="not-found")
    check(api.post(f"{CODES}/{system.id}/take-back"), status=403, code="refused")
    check(api.post(f"{CODES}/{own['id']}/take-back"), status=403, code="refused")
    assert api.post(f"{CODES}/{made['id']}/take-back").status_code == 204
    assert meant() == system.label
    assert api.post(CODES, override | {"label": "Again"}).status_code == 201
    with every_tenant():
        assert LedgerEntry.objects.filter(action="reason_code.taken_back").count() == 1
