"""Rebuilds runs from their event logs and compares with what is stored. Exit code 1 when one does not agree."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from rich.progress import track

from reasoncodes.base.errors import NotFound
from reasoncodes.base.tenancy import every_tenant
from workflows.runs.models import WorkflowInstance
from workflows.runs.selectors.run import instance_get, instances_total, instances_walk
from workflows.runs.services.replay import Replayed, instance_replay


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("instance", nargs="?", help="the instance's id")
        parser.add_argument("--all", action="store_true", help="every instance, oldest first")
        parser.add_argument("--json", action="store_true", help="one JSON object instead of words")

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["instance"]) == options["all"]:
            raise CommandError("Name one instance, or --all.")
        checked, events, differing = 0, 0, list[Replayed]()
        with every_tenant():
            for row in self._all() if options["all"] else [self._one(options["instance"])]:
                replayed = instance_replay(instance=row)
                checked, events = checked + 1, events + replayed.events
                differing += [replayed] if replayed.differences else []
                if replayed.erased_by and not options["json"]:
                    self.stdout.write(f"{row.id} was purged by order {replayed.erased_by}")
        self._say(checked, events, differing, as_json=options["json"])
        if differing:
            raise CommandError("Stored state and event log do not agree.", returncode=1)

    def _say(self, checked: int, events: int, differing: list[Replayed], *, as_json: bool) -> None:
        if as_json:
            found = [{"instance_id": str(one.instance.id), "differences": one.differences} for one in differing]
            self.stdout.write(json.dumps({"instances": checked, "events": events, "differing": found}))
            return
        for one in differing:
            self.stdout.write(self.style.ERROR(f"{one.instance.id} differs in: {', '.join(one.differences)}"))
        self.stdout.write(f"{checked} instances replayed from {events} events, {len(differing)} differ.")

    def _all(self) -> Iterable[WorkflowInstance]:
        shown = self.stderr.isatty()
        total = instances_total() if shown else None
        return track(instances_walk(), total=total, description="Replaying", disable=not shown)

    @staticmethod
    def _one(instance_id: str) -> WorkflowInstance:
        try:
            return instance_get(instance_id=UUID(instance_id))
        except ValueError as error:
            raise CommandError("That is not an instance's id.") from error
        except NotFound as error:
            raise CommandError("There is no such instance.") from error
