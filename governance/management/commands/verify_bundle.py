"""Checks an evidence bundle: a file, or the id of a bundle of this installation. It takes the
installation's own keys, unless others are given. Exit code 0: authentic; 1: not valid; 2: it cannot be checked; 3:
consistent, but whose is unknown, because there is no key to compare.

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
        given = parser.add_mutually_exclusive_group()
        given.add_argument("--public-key", default="", help="other keys: a file, or the text name+id+base64")
        given.add_argument("--keys", default="", help="a holdpoint-keys.json")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        data = self._read(options["bundle"])
        try:
            report = data_verify(data, public_key=self._keys(options["public_key"], options["keys"]))
        except (OSError, verifier.Unusable) as error:
            raise CommandError(f"It cannot be checked: {error}", returncode=2) from error
        self._say(report, as_json=options["json"])
        if report.exit_code:
            said = "The bundle is not valid." if not report.valid else "Whose the bundle is, is unknown."
            raise CommandError(said, returncode=report.exit_code)

    @staticmethod
    def _keys(public_key: str, keys: str) -> str:
        if keys:
            return verifier.keys_read(Path(keys).read_text())
        return Path(public_key).read_text() if public_key and Path(public_key).is_file() else public_key

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
            found = {"result": report.result, "valid": report.valid, **vars(report)}
            self.stdout.write(json.dumps(found, indent=2))
            return
        self.stdout.write("\n".join(verifier.report_lines(report)))
