"""Set-up for the console's pages of definitions: one of each, and their addresses."""

from collections.abc import Callable
from typing import Any

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.definition_support import document, draft, published, template
from workflows.definitions.models import WorkflowDefinition

INSIDE = ("operator", "auditor", "owner", "reviewer", "administrator")
OUTSIDE = ("stranger", "nobody", "anonymous")
OPERATORS = ("operator", "administrator")


def page(*rest: Any) -> str:
    return "/".join(["/admin/workflows/workflowdefinition", *map(str, rest), ""])


class World:
    """A draft, an active one whose contract is closed, and a template."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.active = published(cast, slug="unmistakable")
        self.draft = draft(cast, slug="unmistakable", name="ai_plus_clinician")
        self.template = template()


def faulty() -> dict[str, Any]:
    changed = document(start_step="consent_gat")
    changed["steps"]["halt_ai"]["params"]["reason_code"] = "ai_review_faild"
    return changed


def exists(**where: Any) -> bool:
    with every_tenant():
        return bool(WorkflowDefinition.objects.filter(is_template=False, **where).exists())


ROW_PAGES: dict[str, Callable[[World], str]] = {
    "draft": lambda w: page(w.draft.id, "change"),
    "active": lambda w: page(w.active.id, "change"),
    "compare": lambda w: page(w.draft.id, "compare"),
}
