"""Names the key that seals the ledger next. The key that seals now signs that, so that whoever trusts it can follow.
Run it beside the running installation, then put the new key in place and restart the workers."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from governance.sealing.configured import sealing_key
from governance.sealing.rules.handover import Handover, HandoverInvalid, handover_read
from governance.sealing.rules.signing import SealingKey, SealingStopped, sealing_key_make, sealing_key_read
from governance.sealing.services.key_change import handover_prepare, key_hand_over
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        new = parser.add_mutually_exclusive_group(required=True)
        new.add_argument("--new-key-file", type=Path, help="a file with the new key; made if it does not exist")
        new.add_argument("--new-public-key", help="the new verifier key (name+id+base64), held elsewhere")
        old = parser.add_mutually_exclusive_group()
        old.add_argument("--handover", help="the line that the signer of the old key printed")
        old.add_argument("--old-key-lost", action="store_true", help="record the change without the old signature")
        parser.add_argument("--instead", action="store_true", help="replace a named key that has signed nothing yet")
        parser.add_argument("--confirm", default="", metavar="ID", help="the id of the new key, instead of typing it")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            new = self._new(options)
            with every_tenant():
                old, size = handover_prepare(new_verifier=new)
                self._confirm(old, new, size, options)
                row = key_hand_over(
                    actor=SYSTEM,
                    at=timezone.now(),
                    new_verifier=new,
                    old=self._old(options),
                    handover=self._line(options),
                    instead=options["instead"],
                    installation=True,
                )
        except (DomainError, SealingStopped, HandoverInvalid) as refusal:
            raise CommandError(str(refusal.detail if isinstance(refusal, DomainError) else refusal)) from refusal
        self.stdout.write(f"Key {row.new_key} is named as the successor of {row.old_key_id}. Now put it in place and")
        self.stdout.write("restart the workers; until then the old key seals. Publish the new verifier key:")
        self.stdout.write(new)

    @staticmethod
    def _new(options: dict[str, Any]) -> str:
        if options["new_public_key"]:
            return str(options["new_public_key"]).strip()
        file: Path = options["new_key_file"]
        if not file.exists():
            sealing_key_make(file)
        return sealing_key_read(name=settings.LEDGER_NAME, file=str(file)).verifier

    @staticmethod
    def _old(options: dict[str, Any]) -> SealingKey | None:
        return None if options["handover"] or options["old_key_lost"] else sealing_key()

    @staticmethod
    def _line(options: dict[str, Any]) -> Handover | None:
        return handover_read(options["handover"]) if options["handover"] else None

    def _confirm(self, old: str, new: str, size: int, options: dict[str, Any]) -> None:
        wanted = new.split("+")[1]
        self.stdout.write(f"Now seals:  {old}\nNext seals: {new}\nEntries under the newest head: {size}")
        if options["old_key_lost"]:
            self.stdout.write(self.style.WARNING("Without the old key's signature: who trusts it cannot follow."))
        given = options["confirm"]
        if not given and sys.stdin.isatty():
            given = input(f"Type the id of the new key ({wanted}) to go on: ").strip()
        if given != wanted:
            raise CommandError(f"Not confirmed: nothing was changed. Repeat it with --confirm {wanted}.")
