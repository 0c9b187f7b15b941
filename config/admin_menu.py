"""The console's side bar: everything in two clicks, for whoever may see it."""

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse_lazy

from governance.admin.base import console_actor


def _item(title: str, icon: str, view: str) -> dict[str, Any]:
    link = reverse_lazy(f"admin:{view}_changelist")
    return {"title": title, "icon": icon, "link": link, "permission": _may_see(view)}


def _page(title: str, icon: str, view: str) -> dict[str, Any]:
    link = reverse_lazy(view)
    return {"title": title, "icon": icon, "link": link, "active": lambda request: request.path == str(link)}


def _start(request: HttpRequest) -> list[dict[str, Any]]:
    """For whoever sets things up."""
    operates = bool(console_actor(request).organization_ids) or request.user.is_superuser
    return [_page("Getting started", "flag", "console_start")] if operates else []


def _definitions() -> list[dict[str, Any]]:
    """Templates are rows of the same table on a page of their own, below the list's address."""
    item = _item("Definitions", "account_tree", "workflows_workflowdefinition")
    templates = reverse_lazy("admin:workflows_workflowdefinition_templates")

    def is_template_page(request: HttpRequest) -> bool:
        return request.path == str(templates)

    def is_definition_page(request: HttpRequest) -> bool:
        return request.path.startswith(str(item["link"])) and not is_template_page(request)

    more = {"title": "Templates", "icon": "dashboard_customize", "link": templates, "active": is_template_page}
    return [item | {"active": is_definition_page}, item | more]


def _may_see(view: str) -> Callable[[HttpRequest], bool]:
    """Whoever may not see a page does not get its menu entry."""
    app_label, _, model_name = view.rpartition("_")

    def permission(request: HttpRequest) -> bool:
        model_admin = admin.site.get_model_admin(apps.get_model(app_label, model_name))
        return bool(model_admin.has_view_permission(request))

    return permission


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    return [
        {"title": "", "items": [_page("Overview", "dashboard", "admin:index"), *_start(request)]},
        {
            "title": "Decide",
            "items": [
                _item("Contracts", "contract", "governance_contract"),
                _item("Policies", "rule", "governance_policy"),
                _item("Decisions", "gavel", "governance_enforcementdecision"),
            ],
        },
        {
            "title": "Attempts",
            "items": [
                _item("Attempts", "play_circle", "attempts_attempt"),
                _item("Reviews", "how_to_reg", "attempts_review"),
                _item("Quarantine", "coronavirus", "attempts_quarantinecase"),
                _item("Idempotency keys", "fingerprint", "attempts_idempotencyrecord"),
            ],
        },
        {
            "title": "Notifications",
            "items": [
                _item("Routes", "alt_route", "attempts_notificationroute"),
                _item("Chat workspaces", "forum", "attempts_chatworkspace"),
                _item("Chat accounts", "badge", "attempts_chatidentity"),
                _item("Delivery log", "mail", "attempts_notification"),
            ],
        },
        {
            "title": "Workflows",
            "items": [
                _item("Runs", "directions_run", "workflows_workflowinstance"),
                *_definitions(),
                _item("Unmatched events", "unknown_document", "workflows_workflowevent"),
                _item("Bulk interventions", "checklist", "workflows_bulkintervention"),
                _item("Outbox", "outbox", "workflows_outboxevent"),
                _item("Parked messages", "unsubscribe", "workflows_parkedmessage"),
                _item("Webhooks", "webhook", "workflows_webhookendpoint"),
                _item("Deliveries", "outgoing_mail", "workflows_webhookdelivery"),
            ],
        },
        {"title": "Stop", "items": [_item("Shutdown", "front_hand", "governance_shutdown")]},
        {
            "title": "Record",
            "items": [
                _item("Ledger", "menu_book", "governance_ledgerentry"),
                _item("Evidence", "folder_zip", "governance_evidencebundle"),
                _item("Verification", "verified", "governance_ledgerverification"),
                _item("Witnesses", "visibility", "governance_witnessreceipt"),
                _item("Read audit", "menu_book", "governance_readaccess"),
                _item("Violations", "report", "governance_governanceviolation"),
                _item("Reason codes", "label", "reasoncodes_reasoncode"),
                _item("Regions", "public", "governance_regionprofile"),
            ],
        },
        {
            "title": "Keep and erase",
            "items": [
                _item("Legal holds", "lock", "governance_legalhold"),
                _item("Erasures", "ink_eraser", "governance_erasureorder"),
                _item("Exports", "archive", "governance_exportrequest"),
                _item("Deletions", "person_remove", "governance_deletionrequest"),
            ],
        },
        {
            "title": "Who",
            "items": [
                _item("Organizations", "domain", "governance_organization"),
                _item("Products", "category", "governance_product"),
                _item("People", "group", "governance_user"),
                _item("Service accounts", "smart_toy", "governance_serviceaccount"),
                _item("API keys", "key", "governance_apikey"),
            ],
        },
        {
            "title": "Clock",
            "collapsible": True,
            "items": [_item("Periodic tasks", "schedule", "django_celery_beat_periodictask")],
        },
    ]
