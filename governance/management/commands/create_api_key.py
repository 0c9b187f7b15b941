"""Issues an API key for a service account. Creates the account if it does not exist, for a responsible person."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from governance.people.models import ServiceAccount
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import user_by_name
from governance.people.services.accounts import api_key_issue, service_account_create
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("organization", help="slug")
        parser.add_argument("service_account", help="slug")
        parser.add_argument(
            "--scope", action="append", required=True, choices=[s.value for s in ApiScope], dest="scopes"
        )
        parser.add_argument(
            "--responsible", default="", help="user name of the person who answers for a new service account"
        )
        parser.add_argument(
            "--days", type=int, default=90, help="days that the key is valid; 0: as many as HOLDPOINT_API_KEY_DAYS says"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        with every_tenant():
            organization = Organization.objects.filter(slug=options["organization"]).first()
            if organization is None:
                raise CommandError(f"There is no organization {options['organization']}.")
            try:
                slug, responsible = options["service_account"], options["responsible"]
                account = ServiceAccount.objects.filter(organization=organization, slug=slug).first() or self._made(
                    organization, slug, responsible, now
                )
                issued = api_key_issue(
                    actor=SYSTEM,
                    at=now,
                    service_account=account,
                    scopes=options["scopes"],
                    expires_at=now + timedelta(days=options["days"]) if options["days"] else None,
                )
            except DomainError as refusal:
                raise CommandError(refusal.detail) from refusal
        # To stderr, so that a script gets nothing but the key on stdout.
        self.stderr.write("Shown once; Holdpoint keeps only its hash:")
        self.stdout.write(issued.secret)

    @staticmethod
    def _made(organization: Organization, slug: str, responsible: str, at: datetime) -> ServiceAccount:
        person = user_by_name(username=responsible) if responsible else None
        if person is None:
            raise CommandError("There is no such service account. To create it, add --responsible <user name>.")
        return service_account_create(actor=SYSTEM, at=at, organization=organization, slug=slug, responsible=person)
