"""Checks an evidence bundle: a file, or the id of a bundle of this installation. Exit code 1 if it is not valid, 2 if
it cannot be checked.

It also makes every decision in the bundle again, from the inputs that the bundle contains.
"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.files.storage import storages
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from governance.evidence.selectors import bundle_get
from governance.evidence.services.bundles import data_verify, evidence_open
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant
from sdk import holdpoint_verify as verifier


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("bundle", help="a zip file, or a bundle's id")
        parser.add_argument("--public-key", default="", help="the log's key: a file, or the text name+id+base64")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        data = self._read(options["bundle"])
        given = options["public_key"]
        try:
            key = Path(given).read_text() if given and Path(given).is_file() else given
            report = data_verify(data, public_key=key)
        except (OSError, verifier.Unusable) as error:
            raise CommandError(f"It cannot be checked: {error}", returncode=2) from error
        self._say(report, as_json=options["json"])
        if not report.valid:
            raise CommandError("The bundle is not valid.", returncode=1)

    @staticmethod
    def _read(named: str) -> bytes:
        path = Path(named)
        try:
            if path.is_file():
                return path.read_bytes()
            with every_tenant():
                bundle = bundle_get(bundle_id=UUID(named))
                with evidence_open(bundle=bundle, storage=storages["evidence"], at=timezone.now()) as stream:
                    return stream.read()
        except ValueError as error:
            raise CommandError("That is neither a file nor a bundle's id.", returncode=2) from error
        except DomainError as error:
            raise CommandError(error.detail, returncode=2) from error

    def _say(self, report: Any, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"valid": report.valid, **vars(report)}, indent=2))
            return
        for fault in report.faults:
            self.stdout.write(self.style.ERROR(fault))
        if report.valid:
            self.stdout.write(f"valid: {report.subject} of {report.organization}")
            for line in report.checked:
                self.stdout.write(f"  checked {line}")
            self.stdout.write(f"  signed by {report.signer}, SHA-256 of the key {report.fingerprint}")
