"""Prints `holdpoint-keys.json`: the keys of this ledger and the handovers between them. Keep the file apart from
Holdpoint, and give it to whoever checks evidence bundles: `holdpoint-verify BUNDLE.zip --keys holdpoint-keys.json`.
"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from governance.sealing.selectors.keys import keys_published
from reasoncodes.base.tenancy import every_tenant
from sdk import holdpoint_verify as verifier


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--output", default="", help="write to this file instead")

    def handle(self, *args: Any, **options: Any) -> None:
        with every_tenant():
            keys, handovers = keys_published()
        if not keys:
            raise CommandError("The ledger has no key yet: nothing was sealed.", returncode=1)
        text = json.dumps(verifier.keys_document(keys, handovers), indent=2)
        if options["output"]:
            Path(options["output"]).write_text(text + "\n")
            self.stdout.write(f"{len(keys)} keys written.")
        else:
            self.stdout.write(text)
