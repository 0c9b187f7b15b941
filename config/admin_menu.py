"""The console's side bar: every list in two clicks, for people who may see it."""

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse_lazy

from config.console.schedule import may_see_schedule
from governance.console.admin.base import console_actor

# Name, icon and model of each list.
SECTIONS: dict[str, list[tuple[str, str, str]]] = {
    "Decide": [
        ("Contracts", "contract", "governance_contract"),
        ("Policies", "rule", "governance_policy"),
        ("Decisions", "gavel", "governance_enforcementdecision"),
    ],
    "Attempts": [
        ("Attempts", "play_circle", "attempts_attempt"),
        ("Reviews", "how_to_reg", "attempts_review"),
        ("Delegations", "supervised_user_circle", "attempts_delegation"),
        ("Quarantine", "coronavirus", "attempts_quarantinecase"),
        ("Receivers in trouble", "power_off", "attempts_receivercircuit"),
        ("Idempotency keys", "fingerprint", "attempts_idempotencyrecord"),
    ],
    "Notifications": [
        ("Routes", "alt_route", "attempts_notificationroute"),
        ("Chat workspaces", "forum", "attempts_chatworkspace"),
        ("Chat accounts", "badge", "attempts_chatidentity"),
        ("Delivery log", "mail", "attempts_notification"),
    ],
    "Workflows": [
        ("Runs", "directions_run", "workflows_workflowinstance"),
        ("Bulk interventions", "checklist", "workflows_bulkintervention"),
        ("Modules", "extension", "workflows_module"),
    ],
    "Events": [
        ("Unmatched events", "unknown_document", "workflows_workflowevent"),
        ("Outbox", "outbox", "workflows_outboxevent"),
        ("Parked messages", "unsubscribe", "workflows_parkedmessage"),
        ("Webhooks", "webhook", "workflows_webhookendpoint"),
        ("Webhook deliveries", "outgoing_mail", "workflows_webhookdelivery"),
    ],
    "Stop": [
        ("Shutdown", "front_hand", "governance_shutdown"),
        ("Proposed shutdowns", "emergency_home", "attempts_shutdownproposal"),
    ],
    "Record": [
        ("Ledger", "menu_book", "governance_ledgerentry"),
        ("Evidence", "folder_zip", "governance_evidencebundle"),
        ("Faults of the record", "gpp_bad", "governance_recordfault"),
        ("Verification", "verified", "governance_ledgerverification"),
        ("Witnesses", "visibility", "governance_witnessreceipt"),
        ("Read audit", "menu_book", "governance_readaccess"),
        ("Violations", "report", "governance_governanceviolation"),
        ("Reason codes", "label", "reasoncodes_reasoncode"),
        ("Regions", "public", "governance_regionprofile"),
    ],
    "Keep and erase": [
        ("Legal holds", "lock", "governance_legalhold"),
        ("Erasures", "ink_eraser", "governance_erasureorder"),
        ("Exports", "archive", "governance_exportrequest"),
        ("Deletions", "person_remove", "governance_deletionrequest"),
    ],
    "Who": [
        ("Second person", "supervisor_account", "governance_authoritychange"),
        ("Organizations", "domain", "governance_organization"),
        ("Products", "category", "governance_product"),
        ("Reviewer tiers", "diversity_3", "governance_reviewertier"),
        ("People", "group", "governance_user"),
        ("Identity providers", "passkey", "governance_identityprovider"),
        ("Service accounts", "smart_toy", "governance_serviceaccount"),
        ("API keys", "key", "governance_apikey"),
    ],
}


def _item(title: str, icon: str, view: str) -> dict[str, Any]:
    link = reverse_lazy(f"admin:{view}_changelist")
    return {"title": title, "icon": icon, "link": link, "permission": _may_see(view)}


def _page(title: str, icon: str, view: str) -> dict[str, Any]:
    link = reverse_lazy(view)
    return {"title": title, "icon": icon, "link": link, "active": lambda request: request.path == str(link)}


def _start(request: HttpRequest) -> list[dict[str, Any]]:
    """For people who set things up."""
    operates = bool(console_actor(request).organization_ids) or request.user.is_superuser
    return [_page("Getting started", "flag", "console_start")] if operates else []


def _definitions() -> list[dict[str, Any]]:
    """Templates are rows of the same table, on a page of their own below the list's address."""
    item = _item("Definitions", "account_tree", "workflows_workflowdefinition")
    templates = reverse_lazy("admin:workflows_workflowdefinition_templates")

    def is_template_page(request: HttpRequest) -> bool:
        return request.path == str(templates)

    def is_definition_page(request: HttpRequest) -> bool:
        return request.path.startswith(str(item["link"])) and not is_template_page(request)

    more = {"title": "Templates", "icon": "dashboard_customize", "link": templates, "active": is_template_page}
    return [item | {"active": is_definition_page}, item | more]


def _may_see(view: str) -> Callable[[HttpRequest], bool]:
    """People who may not see a page do not get its menu entry."""
    app_label, _, model_name = view.rpartition("_")

    def permission(request: HttpRequest) -> bool:
        # The page's own rule, asked for each request: a second list of permissions here would drift from it.
        model_admin = admin.site.get_model_admin(apps.get_model(app_label, model_name))
        return bool(model_admin.has_view_permission(request))

    return permission


def _section(title: str) -> dict[str, Any]:
    items = [_item(*listed) for listed in SECTIONS[title]]
    if title == "Workflows":
        items[1:1] = _definitions()
    return {"title": title, "items": items}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    first = {"title": "", "items": [_page("Overview", "dashboard", "admin:index"), *_start(request)]}
    clock = [_page("Schedule", "schedule", "console_schedule")] if may_see_schedule(request) else []
    return [first, *(_section(title) for title in SECTIONS), {"title": "Clock", "items": clock}]
