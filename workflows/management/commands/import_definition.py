"""Imports a workflow definition from a JSON file as a draft, and publishes it on request. All of it, or nothing."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.services.contract import PublishTerms
from workflows.definitions.services.create import definition_create
from workflows.definitions.services.publish import definition_publish
from workflows.management.definition_files import (
    command_error,
    document_read,
    findings_print,
    organization_named,
    product_named,
)


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="the definition's JSON document")
        parser.add_argument("--organization", required=True, help="slug")
        parser.add_argument("--product", help="slug; without it the definition is the whole organization's")
        parser.add_argument("--slug", default="", help="of the definition; made of its name when left out")
        parser.add_argument("--publish", action="store_true", help="publish it too; the active one is archived")
        parser.add_argument("--policy", default="", help="slug of the policy that decides on its steps")
        parser.add_argument("--reason", default="", help="for the history")

    def handle(self, *args: Any, **options: Any) -> None:
        document = document_read(options["file"])
        with every_tenant():
            try:
                with transaction.atomic():
                    self._import(document, options)
            except DomainError as refusal:
                findings_print(self.stderr, refusal.errors)
                raise command_error(refusal) from refusal

    def _import(self, document: Any, options: dict[str, Any]) -> None:
        organization = organization_named(options["organization"])
        product = product_named(organization, options["product"]) if options["product"] else None
        draft = definition_create(
            actor=SYSTEM,
            at=timezone.now(),
            organization=organization,
            document=document,
            slug=options["slug"],
            product_id=product.id if product else None,
            reason=options["reason"],
        )
        self.stdout.write(f"{draft.id}  {draft.slug} version {draft.version}: draft")
        if options["publish"]:
            self._publish(draft, options)

    def _publish(self, draft: WorkflowDefinition, options: dict[str, Any]) -> None:
        found = definition_publish(
            actor=SYSTEM,
            at=timezone.now(),
            definition_id=draft.id,
            terms=PublishTerms(policy_slug=options["policy"]),
            reason=options["reason"],
        )
        if found.archived:
            self.stdout.write(f"Archived: version {found.archived.version}")
        self.stdout.write(f"Published. Contract {found.contract}: {found.contract.state}")
        for row in found.missing:
            self.stdout.write(f"  waits for {row.owner_group}: {row.area} ({row.status})")
