"""Begins a new epoch: leases of earlier epochs are refused. After a restore it confirms what is lost and ends deny
mode."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.sessions.models import Session
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from governance.sealing.configured import known_keys, witnesses_configured
from governance.sealing.services.epoch import epoch_begin
from governance.sealing.tasks import ledger_guard
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reason", required=True, help="a reason code for interventions, such as restored_backup")
        parser.add_argument("--note", default="", help="up to 280 characters, no names")
        parser.add_argument("--sign-out", action="store_true", help="also end every session of the console")

    def handle(self, *args: Any, **options: Any) -> None:
        # If entries are lost and no scheduled check has run since, this engages deny mode; the new epoch releases it.
        ledger_guard()
        try:
            with every_tenant():
                epoch = epoch_begin(
                    actor=SYSTEM,
                    at=timezone.now(),
                    reason_code=options["reason"],
                    note=options["note"],
                    witnesses=witnesses_configured(),
                    keys=known_keys(),
                    installation=True,
                )
        except DomainError as refusal:
            raise CommandError(" ".join([refusal.detail, *(one.message for one in refusal.errors)])) from refusal
        if options["sign_out"]:
            Session.objects.all().delete()
        self.stdout.write(f"Epoch {epoch.number} has begun. Leases of earlier epochs are refused.")
        if epoch.lost_to > epoch.kept:
            self.stdout.write(f"Confirmed as lost: entries {epoch.kept} to {epoch.lost_to - 1} of the signed record.")
