"""Every registered page obeys: governed rows are read-only, buttons ask and explain, GET changes nothing."""

from typing import Any

from django.contrib import admin
from django.urls import reverse

from attempts.intake.models import IdempotencyRecord
from attempts.lifecycle.models import Attempt
from attempts.notify.models import Notification
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review
from config.admin_menu import navigation
from governance.console.admin.base import ConsoleAdmin
from governance.contracts.models import Contract
from governance.enforcement.models import EnforcementDecision
from governance.ledger.models import LedgerEntry
from governance.people.models import ServiceAccount, User
from governance.tenancy.models import Organization, Product, ReviewerTier
from governance.violations.models import GovernanceViolation
from reasoncodes.models import ReasonCode
from tests.cast import Cast
from tests.governance.support import row_counts
from tests.governed import open_contract
from workflows.events.models import OutboxEvent, ParkedMessage, WorkflowEvent
from workflows.runs.models import WorkflowInstance
from workflows.webhooks.models import WebhookDelivery

HOT = {
    Attempt,
    Review,
    QuarantineCase,
    IdempotencyRecord,
    Notification,
    EnforcementDecision,
    GovernanceViolation,
    LedgerEntry,
    WorkflowInstance,
    WorkflowEvent,
    OutboxEvent,
    ParkedMessage,
    WebhookDelivery,
}
# Settings of an organization are changed in place, through services that put the change on the ledger.
EDITABLE = {Organization, Product, ReasonCode, ReviewerTier}
ADDED_BY_FORM = {Organization, Product, User, ServiceAccount}


def registered() -> dict[Any, Any]:
    return dict(admin.site._registry)


def test_every_page_of_ours_stands_on_the_console_base() -> None:
    assert {model for model, page in registered().items() if not isinstance(page, ConsoleAdmin)} == set()


def test_governed_rows_are_read_only_and_nobody_deletes(cast: Cast, rf: Any) -> None:
    request = rf.get("/admin/")
    request.user = cast.administrator
    for model, page in registered().items():
        if not isinstance(page, ConsoleAdmin):
            continue
        assert not page.has_delete_permission(request), model
        assert page.has_change_permission(request) == (model in EDITABLE), model
        if model not in EDITABLE | ADDED_BY_FORM:
            assert set(page.get_fields(request, model())) <= set(page.get_readonly_fields(request, model())), model


def test_every_button_says_what_will_happen_and_only_a_post_presses_it() -> None:
    for model, page in registered().items():
        if isinstance(page, ConsoleAdmin):
            for act in page.acts:
                assert len(act.explanation) > 15, (model, act.verb)
                assert act.explanation.endswith("."), (model, act.verb)
                assert not act.verb.startswith("delete"), (model, act.verb)


def test_what_stops_or_ends_something_asks_for_a_reason() -> None:
    """A dangerous button has a form with a reason code, or is one whose reason is fixed by what it does."""
    fixed = {("apikey", "revoke"), ("user", "take-role"), ("contract", "discard")}
    fixed |= {
        ("reasoncode", "deactivate"),
        ("reasoncode", "take-back"),
        ("reviewertier", "deactivate"),
        ("policy", "archive"),
        ("workflowdefinition", "archive"),
        ("workflowdefinition", "unpublish"),
        ("shutdown", "release"),
        ("identityprovider", "close-scim"),
        ("user", "withdraw-invitation"),
        ("delegation", "end"),
        ("shutdownproposal", "engage"),  # the proposal has one
    }
    for model, page in registered().items():
        if not isinstance(page, ConsoleAdmin):
            continue
        for act in page.acts:
            named = (model._meta.model_name, act.verb)
            if act.danger and named not in fixed:
                assert "reason_code" in act.form.base_fields, named


def test_hot_lists_are_searched_by_whole_ids_and_never_counted_whole() -> None:
    for model, page in registered().items():
        if isinstance(page, ConsoleAdmin):
            assert page.hot == (model in HOT), model
            assert page.show_full_result_count is False, model
            assert page.paginator.__name__ == "BoundedPaginator", model
            for one in page.list_filter if page.hot else ():
                assert isinstance(one, type), (model, one)  # Django's own would ask the whole table for its values


def test_everything_is_two_clicks_away(cast: Cast, rf: Any) -> None:
    request = rf.get("/admin/")
    request.user = cast.administrator
    linked = {str(item["link"]) for part in navigation(request) for item in part["items"]}
    for model, page in registered().items():
        if isinstance(page, ConsoleAdmin):
            assert reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") in linked, model
    assert {"/admin/", "/admin/start/"} <= linked


def test_no_get_of_any_list_or_tool_changes_a_row(cast: Cast) -> None:
    contract = open_contract(cast)
    console = cast.console(cast.operator)
    console.get("/admin/")
    before = row_counts()
    paths = ["/admin/", "/admin/figures/", "/admin/schedule/", "/admin/search/?q=close-case", "/admin/start/"]
    paths += [f"/admin/start/{step}/" for step in ("people", "account", "contract", "call")]
    paths += [f"/admin/governance/contract/{contract.id}/readiness/"]
    for path in paths:
        assert console.get(path).status_code in {200, 302}, path
    assert row_counts() == before
    assert isinstance(contract, Contract)
