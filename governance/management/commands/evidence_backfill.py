"""Requests evidence bundles that are missing: for attempts and runs that ended before their contract asked for
evidence at the end, or while nothing could be requested. Workers build them.

It goes from the oldest end to the newest and passes over those that have a bundle. So it can be stopped and started
again at any time.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from governance.evidence.services.at_end import evidence_backfill
from reasoncodes.base.tenancy import every_tenant


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--limit", type=int, default=1000, help="request at most this many bundles (default 1000)")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["limit"] < 1:
            raise CommandError("The limit must be at least 1.", returncode=2)
        looked = made = 0
        with every_tenant():
            for looked, made in evidence_backfill(at=timezone.now(), limit=options["limit"]):
                self.stdout.write(f"{looked} ends looked at, {made} bundles requested")
        rest = " The limit is reached: run it again for the rest." if made >= options["limit"] else ""
        self.stdout.write(f"Done: {made} bundles requested.{rest}")
