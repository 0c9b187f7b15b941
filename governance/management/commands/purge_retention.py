"""Shows for each organization what retention no longer requires. With `--order`, a named person has it erased."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.progress import Progress

from governance.people.rules.roles import OPERATE
from governance.people.selectors.people import organization_by_slug, organizations_where, user_by_name
from governance.retention.models import ErasureOrder
from governance.retention.selectors.retention import erasure_progress
from governance.retention.services.erasure import PurgePreview, erasure_work, purge_order, purge_preview
from reasoncodes.base.actors import SYSTEM, Actor, ActorKind
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant

WORDS = {
    "legal_hold": "under a legal hold",
    "quarantine_unresolved": "in unresolved quarantine",
    "not_finished": "not finished",
    "retention_not_over": "touched later, not over yet",
}


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--organization", help="slug; default: all")
        parser.add_argument("--order", action="store_true", help="erase what is over and free")
        parser.add_argument("--as", dest="person", help="username of the person who orders it")
        parser.add_argument("--reason-code", help="an intervention code, such as retention_over")
        parser.add_argument("--note", default="", help="where the code requires one")

    def handle(self, *args: Any, **options: Any) -> None:
        with every_tenant():
            ids = self._organizations(options["organization"])
            if not options["order"]:
                previews = purge_preview(actor=SYSTEM, at=timezone.now(), organization_ids=ids)
                for preview in previews:
                    self._say(preview)
                self._say_regions(previews)
                self.stdout.write("Nothing was changed. A person orders it: --order --as NAME --reason-code CODE.")
                return
            # A person and not SYSTEM: an erasure is ordered by somebody who is accountable for it.
            actor = self._person(options)
            chosen = [one for one in ids if actor.may_act_in(one)]
            if not chosen:
                raise CommandError("This person may not order that here.")
            for preview in purge_preview(actor=actor, at=timezone.now(), organization_ids=chosen):
                self._say(preview)
                if preview.total:
                    self._order(actor, preview, options)

    @staticmethod
    def _organizations(slug: str | None) -> list[UUID]:
        rows = organization_by_slug(slug=slug)
        if not rows:
            raise CommandError("There is no such organization.")
        return rows

    @staticmethod
    def _person(options: dict[str, Any]) -> Actor:
        if not options["person"] or not options["reason_code"]:
            raise CommandError("An order names a person (--as) and a reason (--reason-code).")
        user = user_by_name(username=options["person"])
        if user is None or not user.is_active:
            raise CommandError("There is no such active person.")
        return Actor(ActorKind.PERSON, user.id, organizations_where(user=user, permission=OPERATE))

    def _say(self, preview: PurgePreview) -> None:
        over = ", ".join(f"{count} {kind}s" for kind, count in sorted(preview.over.items())) or "nothing"
        self.stdout.write(f"{preview.organization.slug} ({preview.regions}): {over} over and free.")
        for code, count in preview.blocked.items():
            self.stdout.write(f"  {count} {WORDS[code]}")
        if preview.unstamped:
            self.stdout.write(f"  {preview.unstamped} without a stamp: kept")
        if preview.more:
            self.stdout.write("  and more: order again when this one is done")

    def _say_regions(self, previews: list[PurgePreview]) -> None:
        for regions in sorted({preview.regions for preview in previews}):
            found = [preview for preview in previews if preview.regions == regions]
            over, blocked = sum(one.total for one in found), sum(sum(one.blocked.values()) for one in found)
            self.stdout.write(f"Region {regions}: {over} over and free, {blocked} blocked.")

    def _order(self, actor: Actor, preview: PurgePreview, options: dict[str, Any]) -> None:
        try:
            order = purge_order(
                actor=actor,
                at=timezone.now(),
                organization_id=preview.organization.id,
                reason_code=options["reason_code"],
                note=options["note"],
            )
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal
        self._work(order)
        done = erasure_progress(order_id=order.id)
        self.stdout.write(f"  order {order.id}: {done.done} erased, {done.refused} refused.")

    def _work(self, order: ErasureOrder) -> None:
        total = erasure_progress(order_id=order.id).total
        with Progress(disable=not self.stderr.isatty()) as bar:
            task = bar.add_task("Erasing", total=total)
            # In batches. If the command is interrupted, a scheduled task finishes the order.
            while worked := erasure_work(order_id=order.id, now=timezone.now):
                bar.update(task, advance=worked)
