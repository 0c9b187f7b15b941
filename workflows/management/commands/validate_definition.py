"""Judges a workflow definition in a JSON file and prints everything that is wrong with it. Stores nothing."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from reasoncodes.base.tenancy import every_tenant
from workflows.definitions.services.document import document_findings
from workflows.management.definition_files import document_read, findings_print, organization_named


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="the definition's JSON document")
        parser.add_argument("--organization", help="slug; its own reason codes and reviewer tiers count")
        parser.add_argument("--json", action="store_true", help="a list of findings, for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        document = document_read(options["file"])
        with every_tenant():
            slug = options["organization"]
            organization_id = organization_named(slug).id if slug else None
            findings = document_findings(organization_id=organization_id, document=document)
        if options["json"]:
            self.stdout.write(json.dumps([finding.as_json() for finding in findings], indent=2))
        else:
            findings_print(self.stdout, findings)
        if findings:
            raise CommandError(f"{len(findings)} finding{'s' if len(findings) > 1 else ''}: it cannot be published.")
        if not options["json"]:
            self.stdout.write("It can be published.")
