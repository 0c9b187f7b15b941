"""Decides the last recorded decisions again with the draft of a policy, and lists what would change. Stores nothing."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from rich.progress import Progress

from governance.policies.selectors import policy_get
from governance.policies.services import DecisionChange, DecisionTally, policy_simulate
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("policy", type=UUID, help="the draft's id")
        parser.add_argument("--last", type=int, default=1000, help="how many decisions, newest first")
        parser.add_argument("--json", action="store_true", help="one JSON object per change, the tally last")

    def handle(self, *args: Any, **options: Any) -> None:
        tally = DecisionTally()
        with every_tenant(), Progress(disable=not self.stderr.isatty()) as progress:
            task = progress.add_task("Re-deciding", total=options["last"])
            try:
                for item in policy_simulate(policy=policy_get(policy_id=options["policy"]), limit=options["last"]):
                    if isinstance(item, DecisionTally):
                        tally = item
                        progress.update(task, completed=item.decided)
                    else:
                        self._show(item, as_json=options["json"])
            except DomainError as refusal:
                lines = [refusal.detail, *(f"{e.pointer}: {e.message}" for e in refusal.errors)]
                raise CommandError("\n".join(lines)) from refusal
        self.stdout.write(json.dumps(tally.as_json(), indent=None if options["json"] else 2))

    def _show(self, change: DecisionChange, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({key: str(value) for key, value in asdict(change).items()}))
        else:
            rule = change.rule_after or change.reason_code
            self.stdout.write(f"{change.decision_id}  {change.before} -> {change.after}  by {rule}")
