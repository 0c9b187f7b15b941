"""Re-evaluates recorded decisions from what is stored with them. Exit code 1 if one of them comes out differently."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from rich.progress import track

from governance.enforcement.models import EnforcementDecision
from governance.enforcement.selectors import decisions_newest_first
from governance.enforcement.services import decision_replay
from reasoncodes.base.tenancy import every_tenant


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("decision", nargs="?", help="the decision's id")
        parser.add_argument("--all", action="store_true", help="every decision on record, newest first")

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["decision"]) == options["all"]:
            raise CommandError("Name one decision, or --all.")
        with every_tenant():
            rows = self._all() if options["all"] else self._one(options["decision"])
            checked, differing, erased = 0, 0, 0
            for row in rows:
                replay = decision_replay(row=row)
                checked += 1
                if replay.erased_by:
                    erased += 1
                    self.stdout.write(f"{row.id} was purged by order {replay.erased_by}")
                if not replay.agrees:
                    differing += 1
                    self.stdout.write(self.style.ERROR(f"{row.id} differs in: {', '.join(replay.differences)}"))
        self.stdout.write(f"{checked - erased} decisions re-evaluated, {differing} differ.")
        if differing:
            raise CommandError("The record and the rules do not agree.", returncode=1)

    def _all(self) -> Any:
        total = EnforcementDecision.objects.count()
        return track(
            decisions_newest_first(), total=total, description="Re-evaluating", disable=not self.stderr.isatty()
        )

    @staticmethod
    def _one(decision_id: str) -> list[EnforcementDecision]:
        try:
            row = EnforcementDecision.objects.filter(id=UUID(decision_id)).first()
        except ValueError as error:
            raise CommandError("That is not a decision's id.") from error
        if row is None:
            raise CommandError("There is no such decision.")
        return [row]
