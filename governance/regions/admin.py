"""Regional profiles in the console, read-only."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from governance.console.admin.base import ConsoleAdmin
from governance.console.admin.forms import pretty
from governance.enforcement.admin import code_html
from governance.regions.models import RegionProfile


@admin.register(RegionProfile)
class RegionProfileAdmin(ConsoleAdmin):
    list_display = ["code", "name", "version", "at", "hash_shown"]
    search_fields = ["code", "name"]
    fields = ["code", "name", "version", "at", "hash_full"]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/region_disclaimer.html"
    change_form_outer_before_template = "admin/holdpoint/region_disclaimer.html"
    change_form_outer_after_template = "admin/holdpoint/region.html"

    @admin.display(description="SHA-256")
    def hash_shown(self, obj: RegionProfile) -> SafeString:
        return code_html(obj.sha256[:16] + "…")

    @admin.display(description="SHA-256")
    def hash_full(self, obj: RegionProfile) -> SafeString:
        return code_html(obj.sha256)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        first = self.get_queryset(request).first()
        disclaimer = first.disclaimer if first else ""
        return super().changelist_view(request, (extra_context or {}) | {"disclaimer": disclaimer})

    def page_context(self, request: HttpRequest, obj: RegionProfile) -> dict[str, Any]:
        return {"disclaimer": obj.disclaimer, "document_text": pretty(obj.document)}
