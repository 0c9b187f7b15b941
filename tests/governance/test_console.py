"""The console: operators' pages, acts that only a POST does, keys shown once, strangers who see nothing."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.html import escape

from governance.console.admin.base import ConsoleAdmin
from governance.ledger.models import LedgerEntry
from governance.people.models import ApiKey, ServiceAccount, User
from governance.people.rules.roles import PERMISSIONS_OF_ROLE
from governance.people.services.accounts import api_key_issue
from governance.tenancy.models import Organization, Product
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant, tenant_scope
from reasoncodes.models import ReasonCode
from reasoncodes.services import reason_code_create, reason_code_update
from tests.cast import Cast
from tests.factories import ProductFactory, ServiceAccountFactory
from tests.governance.support import everything_stored, row_counts
from tests.governance.test_auditor import page

KEY = re.compile(r"hp_[0-9a-f]{10}_[\w-]{43}")


@pytest.fixture
def account(cast: Cast) -> ServiceAccount:
    account: ServiceAccount = ServiceAccountFactory(organization=cast.organization, slug="caller")
    return account


@pytest.fixture
def key(account: ServiceAccount) -> ApiKey:
    with every_tenant():
        return api_key_issue(actor=SYSTEM, at=timezone.now(), service_account=account, scopes=["ledger:read"]).key


def console_pages() -> Iterator[tuple[type[Any], ConsoleAdmin]]:
    for model, model_admin in admin.site._registry.items():
        if isinstance(model_admin, ConsoleAdmin):
            yield model, model_admin


def actions() -> list[str]:
    with every_tenant():
        return list(LedgerEntry.objects.order_by("id").values_list("action", flat=True))


def test_every_list_and_form_opens_for_the_operator(cast: Cast, key: ApiKey) -> None:
    console = cast.console(cast.operator)
    assert console.get("/admin/").status_code == 200
    for model, model_admin in console_pages():
        shown = console.get(page(model, "changelist"))
        assert shown.status_code == 200, model
        assert console.get(page(model, "changelist") + ("?q=some" * bool(model_admin.search_fields))).status_code == 200
        # An order by a column that has none is refused, not ignored.
        listed = shown.context["cl"]
        sorts = listed.sortable_by is None or listed.list_display[1] in listed.sortable_by
        ordered = 200 if sorts and listed.get_ordering_field(listed.list_display[1]) else 400
        assert console.get(page(model, "changelist") + "?o=1").status_code == ordered, model
        expected = 200 if model_admin.addable and model is not Organization else 403
        assert console.get(page(model, "add")).status_code == expected, model


def test_every_act_has_a_page_and_looking_at_it_changes_nothing(cast: Cast, key: ApiKey) -> None:
    console = cast.console(cast.operator)
    own = {ApiKey: key, ServiceAccount: key.service_account, User: cast.reviewer}
    before = row_counts()
    for model, model_admin in console_pages():
        if model in own:
            assert console.get(page(model, "change", own[model].pk)).status_code == 200
            for act in model_admin.acts:
                shown = console.get(page(model, "act", own[model].pk, act.verb))
                assert shown.status_code == 200, act.verb
                assert escape(act.explanation) in shown.content.decode()
    assert row_counts() == before


@pytest.mark.parametrize("who", ["other_operator", "nobody"])
def test_a_stranger_never_sees_the_row_nor_its_acts(cast: Cast, key: ApiKey, who: str) -> None:
    console = cast.console(getattr(cast, who))
    product = ProductFactory(organization=cast.organization, name="Unmistakable")
    with every_tenant():
        entry = LedgerEntry.objects.filter(organization=cast.organization).first()
    own: dict[type[Any], Any] = {
        Organization: cast.organization,
        Product: product,
        ServiceAccount: key.service_account,
        ApiKey: key,
        User: cast.reviewer,
        LedgerEntry: entry,
    }
    before = row_counts()
    for model, row in own.items():
        assert row is not None
        shown = console.get(page(model, "change", row.pk))
        assert shown.status_code in {302, 403, 404}, model
        listed = console.get(page(model, "changelist")).content.decode()
        for word in ("Unmistakable", "rita", key.prefix):
            assert word not in listed, (model, word)
        for act in dict(console_pages())[model].acts:
            for answer in (
                console.get(page(model, "act", row.pk, act.verb)),
                console.post(page(model, "act", row.pk, act.verb)),
            ):
                assert answer.status_code in {403, 404}, (model, act.verb)
    assert row_counts() == before


def test_an_anonymous_visitor_is_sent_to_the_login_page(cast: Cast, key: ApiKey) -> None:
    for path in ("/admin/", page(ApiKey, "changelist"), page(ApiKey, "act", key.pk, "revoke")):
        answer = Client().get(path)
        assert (answer.status_code, answer["Location"].split("?")[0]) == (302, "/admin/login/")
    assert Client().get("/admin/login/").status_code == 200


def test_signing_in_works_and_a_wrong_password_does_not(cast: Cast) -> None:
    assert cast.operator
    client = Client()
    wrong = client.post("/admin/login/", {"username": "alice", "password": "not this one at all"})
    assert wrong.status_code == 200
    assert b"not this one at all" not in wrong.content
    right = client.post("/admin/login/?next=/admin/", {"username": "alice", "password": "a long enough pass phrase"})
    assert right.status_code == 302
    assert client.get("/admin/").status_code == 200


def test_a_post_without_a_csrf_token_does_nothing(cast: Cast, key: ApiKey) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.operator)
    for path in (page(ApiKey, "act", key.pk, "revoke"), page(Product, "add"), page(User, "add")):
        assert client.post(path, {}).status_code == 403
    key.refresh_from_db()
    assert key.revoked_at is None


def issue(console: Client, account: ServiceAccount, **data: Any) -> Any:
    return console.post(page(ServiceAccount, "act", account.pk, "issue-key"), {"days": 30} | data)


def test_a_key_is_shown_once_and_kept_nowhere(cast: Cast, account: ServiceAccount) -> None:
    console = cast.console(cast.operator)
    shown = issue(console, account, scopes=["ledger:read"])
    assert shown.status_code == 200
    assert "no-store" in shown["Cache-Control"]
    (secret,) = set(KEY.findall(shown.content.decode()))
    with every_tenant():
        made = ApiKey.objects.get(service_account=account)
    assert Client().get("/api/v1/ledger/entries", headers={"authorization": f"Bearer {secret}"}).status_code == 200
    assert secret.split("_", 2)[2] not in everything_stored()  # sessions, messages and admin history included
    assert not KEY.search(console.get(page(ApiKey, "change", made.pk)).content.decode())
    assert "api_key.issued" in actions()


def test_an_operator_cannot_issue_the_scope_that_reaches_everywhere(cast: Cast, account: ServiceAccount) -> None:
    refused = issue(cast.console(cast.operator), account, scopes=["orchestrator:admin"])
    assert not KEY.findall(refused.content.decode())
    assert "Only an administrator of the installation" in refused.content.decode()
    assert KEY.findall(issue(cast.console(cast.administrator), account, scopes=["orchestrator:admin"]).content.decode())


def test_a_third_key_is_an_error_on_the_form(cast: Cast, account: ServiceAccount) -> None:
    console = cast.console(cast.operator)
    for _ in range(2):
        issue(console, account, scopes=["ledger:read"])
    refused = issue(console, account, scopes=["ledger:read"])
    assert "already has two live API keys" in refused.content.decode()
    assert not KEY.findall(refused.content.decode())


def test_rotating_and_revoking(cast: Cast, key: ApiKey) -> None:
    console = cast.console(cast.operator)
    rotated = console.post(page(ApiKey, "act", key.pk, "rotate"), {"hours": 1})
    assert KEY.findall(rotated.content.decode())
    assert "no-store" in rotated["Cache-Control"]
    assert console.post(page(ApiKey, "act", key.pk, "revoke")).status_code == 302
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert actions()[-2:] == ["api_key.rotated", "api_key.revoked"]


def test_suspending_needs_a_reason_code_that_exists_and_its_note(cast: Cast, account: ServiceAccount) -> None:
    console, url = cast.console(cast.operator), page(ServiceAccount, "act", account.pk, "suspend")
    for data in ({}, {"reason_code": "nonsense"}, {"reason_code": "incident_response"}):
        assert console.post(url, data).status_code in {200, 400}
    account.refresh_from_db()
    assert account.status == "active"
    assert console.post(url, {"reason_code": "incident_response", "note": "see INC-7"}).status_code == 302
    account.refresh_from_db()
    assert (account.status, account.suspended_reason_code) == ("suspended", "incident_response")
    assert console.post(page(ServiceAccount, "act", account.pk, "reinstate")).status_code == 302
    marked = ["service_account.suspended", "service_account.reinstated", "authority.founding"]
    assert actions()[-3:] == marked


def organization_form(organization: Organization, **changes: Any) -> dict[str, Any]:
    fields = [
        "name",
        "regions",
        "status",
        "capacity_units",
        "max_concurrency",
        "max_runs_per_min",
        "max_open_holds",
        "max_writes_per_run",
    ]
    return {name: getattr(organization, name) for name in fields} | changes


def test_changing_an_organization_is_on_the_ledger_and_the_slug_stays(cast: Cast) -> None:
    console, url = cast.console(cast.operator), page(Organization, "change", cast.organization.pk)
    assert console.post(url, organization_form(cast.organization, max_concurrency=7, slug="other")).status_code == 302
    cast.organization.refresh_from_db()
    assert (cast.organization.max_concurrency, cast.organization.slug) == (7, "clinic")
    with every_tenant():
        entry = LedgerEntry.objects.filter(action="organization.changed").get()
    assert entry.payload == {"max_concurrency": 7}
    assert entry.actor_kind == "person"
    console.post(url, organization_form(cast.organization))
    assert actions().count("organization.changed") == 1  # nothing changed, nothing recorded
    refused = console.post(url, organization_form(cast.organization, capacity_units=0))
    assert refused.status_code == 200


def test_only_an_administrator_adds_an_organization(cast: Cast) -> None:
    data = organization_form(cast.organization, slug="third", name="Third", regions=["EU"])
    assert cast.console(cast.operator).post(page(Organization, "add"), data).status_code == 403
    assert cast.console(cast.administrator).post(page(Organization, "add"), data).status_code == 302
    with every_tenant():
        third = Organization.objects.get(slug="third")
        assert third.role_groups.count() == len(PERMISSIONS_OF_ROLE)


def test_adding_products_and_service_accounts_only_where_one_operates(cast: Cast) -> None:
    console = cast.console(cast.operator)
    for model in (Product, ServiceAccount):
        data = {"organization": cast.organization.pk, "slug": "new", "name": "New", "responsible": cast.operator.pk}
        assert console.post(page(model, "add"), data).status_code == 302, model
        refused = console.post(page(model, "add"), data | {"organization": cast.other.pk, "slug": "newer"})
        assert refused.status_code in {200, 403}, model
        with every_tenant():
            assert set(model.objects.values_list("organization_id", flat=True)) == {cast.organization.id}
    assert {"product.created", "service_account.created"} <= set(actions())


def test_the_forms_offer_nobody_and_nothing_of_another_organization(cast: Cast) -> None:
    assert cast.other_operator
    console = cast.console(cast.operator)
    text = console.get(page(ServiceAccount, "add")).content.decode()
    assert "alice" in text
    for word in ("oscar", "Stranger", str(cast.other.pk)):
        assert word not in text
    for path in (page(User, "add"), page(User, "act", cast.operator.pk, "give-role")):
        text = console.get(path).content.decode()
        assert "clinic: operator" in text
        assert "stranger" not in text


def test_a_person_in_two_organizations_shows_each_only_its_own_roles(cast: Cast) -> None:
    both = cast.person("bianca", "auditor")
    cast.person("bianca", "reviewer:sa_qa", organization=cast.other)
    for console, seen, hidden in (
        (cast.console(cast.operator), "clinic/auditor", "stranger/"),
        (cast.console(cast.other_operator), "stranger/reviewer:sa_qa", "clinic/"),
    ):
        for path in (page(User, "changelist"), page(User, "change", both.pk)):
            text = console.get(path).content.decode()
            assert seen in text
            assert hidden not in text


def add_person(cast: Cast, console: Client, **changes: Any) -> Any:
    with tenant_scope([cast.organization.id]):
        role = cast.organization.role_groups.get(role="auditor").pk
    data = {"username": "petra", "is_staff": "on", "role": role} | changes
    return console.post(page(User, "add"), data)


def test_a_new_person_has_a_role_and_is_found_by_whoever_made_them(cast: Cast) -> None:
    console = cast.console(cast.operator)
    shown = add_person(cast, console)
    assert "/accounts/link/" in shown.content.decode()
    petra = User.objects.get(username="petra")
    assert (petra.is_superuser, petra.has_usable_password()) == (False, False)
    assert "petra" in console.get(page(User, "changelist")).content.decode()
    assert actions()[-4:] == ["person.created", "person.role_given", "invitation.created", "authority.founding"]
    assert add_person(cast, console).status_code == 409  # the name is taken


def test_roles_are_given_and_taken_only_in_ones_own_organization(cast: Cast) -> None:
    console, url = cast.console(cast.operator), page(User, "act", cast.reviewer.pk, "give-role")
    with every_tenant():
        own = cast.organization.role_groups.get(role="reviewer:sa_qa").pk
        foreign = cast.other.role_groups.get(role="operator").pk
    assert console.post(url, {"role": foreign}).status_code == 200  # not among the choices
    assert console.post(url, {"role": own}).status_code == 302
    assert actions()[-2:] == ["person.role_given", "authority.founding"]
    assert set(cast.reviewer.groups.values_list("name", flat=True)) == {
        "clinic/reviewer:customer_clinician",
        "clinic/reviewer:sa_qa",
    }


def test_the_ledger_can_be_read_and_nothing_else(cast: Cast) -> None:
    with every_tenant():
        entry = LedgerEntry.objects.filter(organization=cast.organization).first()
    assert entry is not None
    for user in (cast.operator, cast.administrator):
        console = cast.console(user)
        shown = console.get(page(LedgerEntry, "change", entry.pk))
        assert bytes(entry.sha256).hex() in shown.content.decode()
        assert console.get(page(LedgerEntry, "add")).status_code == 403
        for name in ("change", "delete"):
            assert console.post(page(LedgerEntry, name, entry.pk), {"post": "yes"}).status_code == 403
    assert cast.console(cast.reviewer).get(page(LedgerEntry, "changelist")).status_code == 403


def code_form(cast: Cast, **changes: Any) -> dict[str, Any]:
    return {
        "organization": cast.organization.pk,
        "scope": "human_decline",
        "code": "tired",
        "label": "Tired",
        "applicable_step_kinds": '["human_review"]',
    } | changes


def test_reason_codes_are_added_changed_and_deactivated(cast: Cast) -> None:
    console = cast.console(cast.operator)
    for bad in ({"code": "Bad Code"}, {"organization": ""}, {"applicable_step_kinds": '{"a": 1}'}, {"label": ""}):
        assert console.post(page(ReasonCode, "add"), code_form(cast, **bad)).status_code == 200, bad
    assert console.post(page(ReasonCode, "add"), code_form(cast)).status_code == 302
    with every_tenant():
        row = ReasonCode.objects.get(code="tired")
    url = page(ReasonCode, "change", row.pk)
    assert console.post(url, {"label": "Very tired", "applicable_step_kinds": "null"}).status_code == 302
    assert console.post(url, {"label": "Very tired", "applicable_step_kinds": "null"}).status_code == 302
    assert console.post(page(ReasonCode, "act", row.pk, "deactivate")).status_code == 302
    assert actions()[-3:] == ["reason_code.created", "reason_code.changed", "reason_code.deactivated"]
    row.refresh_from_db()
    assert (row.label, row.applicable_step_kinds, row.active) == ("Very tired", None, False)


def test_the_systems_reason_codes_can_only_be_looked_at(cast: Cast) -> None:
    console = cast.console(cast.operator)
    with every_tenant():
        row = ReasonCode.objects.get(organization=None, scope="intervention", code="rehearsal")
    assert b'name="_save"' not in console.get(page(ReasonCode, "change", row.pk)).content
    assert console.post(page(ReasonCode, "change", row.pk), {"label": "x"}).status_code == 403
    assert console.post(page(ReasonCode, "act", row.pk, "deactivate")).status_code == 403


def test_the_admin_history_names_fields_never_values(cast: Cast) -> None:
    console = cast.console(cast.operator)
    console.post(page(ReasonCode, "add"), code_form(cast, description="zx81marker"))
    add_person(cast, console)
    assert LogEntry.objects.count() == 1  # acts are in the ledger, not in the admin's history
    text = " ".join(f"{entry.change_message}" for entry in LogEntry.objects.all())
    assert "zx81marker" not in text


def fill(cast: Cast, number: int) -> None:
    """Rows by a person, so that every list has something to look up per row if it does."""
    actor = cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        for index in range(number):
            account = ServiceAccountFactory(organization=cast.organization, responsible=cast.reviewer)
            api_key_issue(actor=actor, at=timezone.now(), service_account=account, scopes=["ledger:read"])
            ProductFactory(organization=cast.organization)
            cast.person(f"person-{number}-{index}", "auditor")
            code = reason_code_create(
                actor=actor,
                at=timezone.now(),
                organization_id=cast.organization.id,
                scope="halt",
                code=f"code_{number}_{index}",
                label="x",
            )
            reason_code_update(actor=actor, at=timezone.now(), reason_code_id=code.id, changes={"label": "y"})


def test_a_list_of_fifty_costs_as_many_queries_as_a_list_of_five(cast: Cast) -> None:
    console = cast.console(cast.operator)
    models = [Organization, Product, User, ServiceAccount, ApiKey, ReasonCode, LedgerEntry]

    def cost() -> dict[str, int]:
        counted = {}
        for model in models:
            with CaptureQueriesContext(
                connection,
            ) as queries:
                assert console.get(page(model, "changelist")).status_code == 200
            counted[model.__name__] = len(queries)
        return counted

    fill(cast, 5)
    cost()  # content types and the like are looked up once
    few = cost()
    fill(cast, 45)
    assert cost() == few
    assert max(few.values()) < 80
