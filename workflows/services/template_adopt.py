"""The starter workflows as templates: rows that belong to nobody, brought up to date after every migrate."""

from datetime import datetime
from typing import Any

from django.db import transaction

from reasoncodes.actors import SYSTEM
from reasoncodes.tenancy import every_tenant
from workflows.models import WorkflowDefinition
from workflows.services.definition_document import document_set, document_sha256
from workflows.services.definition_record import content_of, definition_record
from workflows.starters.starters import starters

SHIPPED = "Shipped with the program"


def templates_adopt(*, at: datetime) -> list[str]:
    """One query when nothing changed. A template stays a draft, so a newer starter replaces its document: one version
    more, and a revision that says what changed. Clones are copies and do not change with it."""
    wanted = {name.replace("_", "-"): document for name, document in starters().items()}
    with every_tenant():
        rows = WorkflowDefinition.objects.filter(is_template=True)
        known = dict(rows.values_list("slug", "snapshot_sha256"))
        changed = {slug: doc for slug, doc in wanted.items() if known.get(slug) != document_sha256(doc)}
        if changed:
            with transaction.atomic():
                for slug, document in changed.items():
                    _adopt(slug, document, at=at)
    return list(changed)


def _adopt(slug: str, document: dict[str, Any], *, at: datetime) -> None:
    template = WorkflowDefinition.objects.select_for_update(no_key=True).filter(is_template=True, slug=slug).first()
    before: dict[str, Any] = {}
    if template is None:
        template = WorkflowDefinition(slug=slug, is_template=True, created_at=at)
        action = "definition.created"
    else:
        before, action = content_of(template), "definition.changed"
        template.version += 1
    document_set(template, document)
    template.snapshot_sha256, template.updated_at = document_sha256(document), at
    template.save()
    definition_record(template, action, actor=SYSTEM, at=at, before=before, reason=SHIPPED)
