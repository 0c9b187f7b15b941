"""Fires good, repeated, late, reordered and forged messages at a module and reports what it makes of them.

Exit codes: 0 it conforms, 1 it does not, 2 it could not be checked. docs/modules.md says what is demanded.
"""

import json
import os
import sys
from argparse import ArgumentParser
from typing import Any
from uuid import uuid4

import httpx
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attempts.execution.adapters.base import signing_secret
from governance.outside.http import AddressRefused
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from sdk.conformance.messages import Kit, MessageForm, secret_bytes
from sdk.conformance.report import NotReachable, ProbeResult, check
from workflows.management.definition_files import organization_named
from workflows.management.module_sender import ModuleSender
from workflows.modules.configured import module_keys
from workflows.modules.models import Module
from workflows.modules.selectors import module_named, module_salts
from workflows.modules.services.registry import module_check_record

SECRET = "HOLDPOINT_MODULE_SECRET"  # noqa: S105  the name of a variable
CANNOT = 2


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("url", help="the module's endpoint; messages are posted there")
        parser.add_argument(
            "--form", choices=[*MessageForm], default=MessageForm.CALL, help="an adapter's call, or a webhook"
        )
        parser.add_argument("--organization", help="slug; sign as the http adapter does for it")
        parser.add_argument(
            "--module",
            help="slug of a registered module of the organization; sign with its secret, and keep the report",
        )
        parser.add_argument("--secret-env", default=SECRET, help=f"the variable that has the whsec_… secret ({SECRET})")
        parser.add_argument(
            "--effects-url", help="answers GET with {key: how often the work was done}, in a test build"
        )
        parser.add_argument("--allow-private", action="store_true", help="plain http and private addresses are meant")
        parser.add_argument("--seconds", type=float, default=10.0, help="how long an answer may take (10)")
        parser.add_argument("--json", action="store_true", help="one JSON object, for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        kit = Kit(secret=secret_from(options), form=MessageForm(options["form"]), run=uuid4(), clock=timezone.now)
        sender = ModuleSender(options["url"], options["seconds"], options["allow_private"])
        counted = options["effects_url"]
        try:
            findings = check(kit, sender.send, (lambda: sender.effects(counted)) if counted else None)
        except (AddressRefused, httpx.InvalidURL) as error:
            raise CommandError(f"Not called: {error}. --allow-private allows it.", returncode=CANNOT) from error
        except NotReachable as error:
            raise CommandError("The module did not answer.", returncode=CANNOT) from error
        wrong = [finding for finding in findings if not finding.ok]
        self.stdout.write(as_json(options, findings) if options["json"] else as_table(findings, counted=bool(counted)))
        if options["module"]:
            with every_tenant():
                module_check_record(
                    actor=SYSTEM,
                    at=timezone.now(),
                    module_id=module_of(options).id,
                    report=report_of(options, findings),
                )
        if wrong:
            sys.exit(1)


def secret_from(options: dict[str, Any]) -> bytes:
    """Never from the command line, which everybody on the machine sees."""
    if options["module"]:
        with every_tenant():
            module = module_of(options)
            keys = module_keys(module.id, module_salts(module_id=module.id, at=timezone.now()))
        if not keys:
            raise CommandError("This module is not called over http, so it has no secret.", returncode=CANNOT)
        return keys[0]
    if options["organization"]:
        with every_tenant():
            return secret_bytes(signing_secret(organization_named(options["organization"]).id))
    try:
        return secret_bytes(os.environ[options["secret_env"]])
    except KeyError as error:
        text = f"Set {options['secret_env']} to the module's secret, or give --organization."
        raise CommandError(text, returncode=CANNOT) from error
    except ValueError as error:
        raise CommandError("The secret is not of the form whsec_….", returncode=CANNOT) from error


def module_of(options: dict[str, Any]) -> Module:
    if not options["organization"]:
        raise CommandError("--module needs --organization.", returncode=CANNOT)
    organization = organization_named(options["organization"])
    found = module_named(organization_id=organization.id, slug=options["module"])
    if found is None:
        raise CommandError("There is no module of this name.", returncode=CANNOT)
    return found


def as_json(options: dict[str, Any], findings: list[ProbeResult]) -> str:
    return json.dumps(report_of(options, findings), indent=2)


def report_of(options: dict[str, Any], findings: list[ProbeResult]) -> dict[str, Any]:
    return {
        "form": str(options["form"]),
        "effects_counted": bool(options["effects_url"]),
        "conforms": all(finding.ok for finding in findings),
        "findings": [finding.as_json() for finding in findings],
    }


def as_table(findings: list[ProbeResult], *, counted: bool) -> str:
    table = Table(title="What the module makes of it", title_justify="left")
    for name in ("", "group", "rule", "what it did instead"):
        table.add_column(name)
    for finding in findings:
        mark = Text("ok", "green") if finding.ok else Text("WRONG", "bold red")
        table.add_row(mark, finding.group, finding.rule, finding.said or "")
    wrong = sum(not finding.ok for finding in findings)
    console = Console(width=None if sys.stdout.isatty() else 140)
    with console.capture() as captured:
        console.print(table)
        verdict = f"{wrong} of {len(findings)} rules broken." if wrong else f"Conforms to all {len(findings)} rules."
        console.print(Text(verdict, "bold red" if wrong else "bold green"))
        if not counted:
            console.print("How often it did the work cannot be seen from outside: --effects-url shows it.")
    return captured.get()
