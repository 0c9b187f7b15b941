"""The console's list of receivers that failed: which circuits are open, why, and when the next probe goes."""

from django.contrib import admin
from unfold.decorators import display

from attempts.receivers.models import ReceiverCircuit
from governance.console.admin.base import ConsoleAdmin

STATE_LABELS = {"open": "danger", "failing": "warning", "well": "success"}


@admin.register(ReceiverCircuit)
class ReceiverCircuitAdmin(ConsoleAdmin):
    list_display = [
        "receiver",
        "connector",
        "organization",
        "standing",
        "failures",
        "last_why",
        "opened_at",
        "probe_at",
    ]
    list_select_related = ["organization"]
    fields = [
        "receiver",
        "connector",
        "organization",
        "standing",
        "failures",
        "last_why",
        "opened_at",
        "probe_at",
        "probes",
        "changed_at",
    ]
    readonly_fields = fields
    ordering = ["-id"]

    @display(description="State", label=STATE_LABELS)
    def standing(self, obj: ReceiverCircuit) -> str:
        if obj.opened_at is not None:
            return "open"
        return "failing" if obj.failures else "well"
