"""Links in the console's fields, in the colour that unfold gives its own."""

from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString


def link(url: str, text: Any) -> SafeString:
    return format_html('<a class="text-primary-700 underline dark:text-primary-400" href="{}">{}</a>', url, text)


def run_link(instance_id: Any, nothing: str) -> SafeString | str:
    """To the page of a run; `nothing` when there is none."""
    if instance_id is None:
        return nothing
    return link(reverse("admin:workflows_workflowinstance_change", args=[instance_id]), instance_id)
