"""Seals second factors, chat tokens and every other sealed secret again with the current SECRET_KEY. Run it after a
change of SECRET_KEY, with the former one in SECRET_KEY_FALLBACKS. It can be stopped and run again at any time, and web
and worker go on meanwhile. Exit code 1: something is still under another key."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.progress import Progress

from governance.secrets.selectors import Standing, secrets_standing
from governance.secrets.services import BATCH, Rotated, secrets_rotate
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing; say what is left under another key")
        parser.add_argument("--batch", type=int, default=BATCH, help=f"texts per transaction (default {BATCH})")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        with every_tenant():
            rotated = Rotated(left=secrets_standing()) if options["check"] else self._rotate(options)
        self._say(rotated, as_json=options["json"])
        if not rotated.done:
            raise CommandError(self._rest(rotated.left), returncode=1)

    def _rotate(self, options: dict[str, Any]) -> Rotated:
        with Progress(disable=options["json"] or not self.stderr.isatty()) as bar:
            task = bar.add_task("Sealing again")
            return secrets_rotate(
                actor=SYSTEM,
                at=timezone.now(),
                batch=max(1, options["batch"]),
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )

    def _say(self, rotated: Rotated, *, as_json: bool) -> None:
        left = rotated.left
        if as_json:
            facts = {"current": left.current, "former": left.former, "unknown": left.unknown}
            self.stdout.write(json.dumps({"resealed": dict(rotated.resealed), "sealed_under": facts}))
            return
        for column, count in sorted(rotated.resealed.items()):
            self.stdout.write(f"{column}: {count} sealed again.")
        self.stdout.write(f"{left.current} sealed texts are under the current SECRET_KEY, {left.former} under a former")
        self.stdout.write(f"one, {left.unknown} under a key that is not configured here.")

    @staticmethod
    def _rest(left: Standing) -> str:
        if left.unknown:
            return f"{left.unknown} texts need a key that is in neither SECRET_KEY nor SECRET_KEY_FALLBACKS: add it."
        return f"{left.former} texts are under a former key. Run rotate_secrets before you take that key away."
