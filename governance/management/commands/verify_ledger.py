"""Checks the whole record: hashes entries again, rebuilds the tree, compares signed heads. Exit code 1 if something is
wrong."""

import json
import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.progress import Progress

from governance.sealing.configured import known_keys, witnesses_configured
from governance.sealing.services.verify import Verified, ledger_verify
from reasoncodes.base.tenancy import every_tenant


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one per core")
        parser.add_argument("--witnesses", action="store_true", help="also compare with every head that witnesses keep")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        quiet = options["json"] or not self.stderr.isatty()
        witnesses = witnesses_configured() if options["witnesses"] else []
        if options["witnesses"] and not witnesses:
            raise CommandError("No witness is configured (HOLDPOINT_WITNESSES).", returncode=2)
        with every_tenant(), Progress(disable=quiet) as bar:
            task = bar.add_task("Verifying the ledger")

            def progress(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            verified = ledger_verify(
                processes=options["processes"], progress=progress, witnesses=witnesses, keys=known_keys()
            )
        self._say(verified, as_json=options["json"])
        if verified.faults:
            raise CommandError("The record is not what was sealed.", returncode=1)

    def _say(self, verified: Verified, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(verified.as_json(), indent=2))
            return
        for text in verified.wrong:
            self.stdout.write(self.style.ERROR(text))
        more = verified.faults - len(verified.wrong)
        if more > 0:
            self.stdout.write(f"and {more} more")
        for text in verified.notes:
            self.stdout.write(self.style.WARNING(text))
        for witness in verified.witnesses:
            self.stdout.write(f"Witness {witness.words}.")
        self.stdout.write(
            f"{verified.entries} entries under {verified.heads} signed heads checked, {verified.faults} faults; "
            f"{verified.unsealed} entries wait to be sealed; {verified.erased} payloads were erased by order."
        )
