"""Seeds the demo organization and prints its logins and keys. Refused under production settings."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from config.demo.secrets import DemoSecrets
from config.demo.seed import demo_seed


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object, for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO_ALLOWED:
            raise CommandError("The demo makes accounts with known passwords; it is refused under production settings.")
        facts = demo_seed(at=timezone.now(), secrets=DemoSecrets())
        if options["json"]:
            self.stdout.write(json.dumps(facts, indent=2))
            return
        self.stdout.write(f"Holdpoint demo at {facts['base_url']}\n\nPeople:")
        for user in facts["users"].values():
            self.stdout.write(f"  {user['username']:32} {user['password']}")
        self.stdout.write("\nAPI keys:")
        for name, key in facts["keys"].items():
            self.stdout.write(f"  {name:32} {key}")
