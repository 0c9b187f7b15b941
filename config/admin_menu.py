"""The console's side bar and front page."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse_lazy


def _item(title: str, icon: str, view: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{view}_changelist")}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    return [
        {
            "title": "Record",
            "items": [
                _item("Ledger", "menu_book", "governance_ledgerentry"),
                _item("Reason codes", "label", "reasoncodes_reasoncode"),
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


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The front page's figures; they grow with every part."""
    return context
