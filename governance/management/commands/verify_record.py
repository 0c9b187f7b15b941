"""Checks the whole record: the ledger with its tree and heads, and every governed row against it. Exit code 1 if
something is wrong."""

import json
import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.progress import Progress

from governance.integrity.services.check import RecordChecked, record_check
from governance.sealing.configured import known_keys, witnesses_configured
from reasoncodes.base.tenancy import every_tenant


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--full", action="store_true", help="everything, not only what came since the last good check"
        )
        parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one per core")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        quiet = options["json"] or not self.stderr.isatty()
        with every_tenant(), Progress(disable=quiet) as bar:
            task = bar.add_task("Verifying the record")

            def progress(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            checked = record_check(
                full=options["full"],
                at=timezone.now(),
                processes=options["processes"],
                progress=progress,
                witnesses=witnesses_configured(),
                keys=known_keys(),
            )
        self._say(checked, as_json=options["json"])
        if not checked.valid:
            raise CommandError("The record is not what the ledger says.", returncode=1)

    def _say(self, checked: RecordChecked, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(checked.as_json(), indent=2))
            return
        for fault in checked.faults:
            self.stdout.write(self.style.ERROR(f"{fault.table} {fault.id}: {fault.what}"))
        for text in checked.notes:
            self.stdout.write(self.style.WARNING(text))
        self.stdout.write(
            f"{checked.entries} entries and {checked.rows} bound rows of {checked.tables} tables checked, "
            f"{checked.count} faults."
        )
