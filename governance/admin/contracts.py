"""Contracts in the console: drafts, their moves, and the way to the readiness board."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.views import ChangeList

from governance.admin import contract_acts
from governance.admin.readiness import ReadinessPages
from governance.models import Contract
from governance.readiness import CORE_FIELDS
from governance.selectors import readiness_board
from governance.selectors.console import readiness_counts

STATE_LABELS = {"draft": "info", "open": "success", "suspended": "warning", "retired": "default"}


class ContractChangeList(ChangeList):
    """Counts the approvals of all contracts on the page together."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows: list[Any] = list(self.result_list)  # type: ignore[has-type]
        counts = readiness_counts(contracts=rows)
        for row in rows:
            row.approved_areas = counts[row.id]
        self.result_list = rows


@admin.register(Contract)
class ContractAdmin(ReadinessPages):
    addable = True
    list_display = [
        "__str__",
        "title",
        "state_shown",
        "readiness",
        "effect",
        "risk_tier",
        "adapter",
        "policy_slug",
        "organization",
    ]
    list_filter = ["state", "effect", "risk_tier", "adapter"]
    search_fields = ["slug", "title", "=id"]
    search_help_text = "Slug, title or id."
    fields = [
        "organization",
        "slug",
        "version",
        "title",
        "state_shown",
        "closed_reason_code",
        *CORE_FIELDS,
        "opened_at",
        "snapshot_shown",
    ]
    readonly_fields = fields
    change_form_outer_after_template = "admin/holdpoint/contract.html"
    add_act = contract_acts.ADD
    acts = contract_acts.ACTS

    def get_queryset(self, request: HttpRequest) -> QuerySet[Contract]:
        return super().get_queryset(request).select_related("organization")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ContractChangeList

    @display(description="State", label=STATE_LABELS)
    def state_shown(self, obj: Contract) -> str:
        return str(obj.state)

    @admin.display(description="Readiness")
    def readiness(self, obj: Contract) -> SafeString:
        url = self.page_url("readiness", obj.id)
        return format_html('<a href="{}">{}/10 approved</a>', url, getattr(obj, "approved_areas", "?"))

    @admin.display(description="Snapshot SHA-256")
    def snapshot_shown(self, obj: Contract) -> SafeString | str:
        return format_html("<code>{}</code>", obj.snapshot_sha256) if obj.snapshot_sha256 else "none yet: never opened"

    def page_links(self, request: HttpRequest, obj: Contract) -> list[dict[str, Any]]:
        return [{"title": "Readiness board", "url": self.page_url("readiness", obj.id), "primary": True}]

    def page_context(self, request: HttpRequest, obj: Contract) -> dict[str, Any]:
        return {"board": readiness_board(contract=obj)}
