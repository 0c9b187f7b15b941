"""The ledger entry. `governance.ledger.services` builds it; it is inserted in the transaction of what it describes."""

from collections.abc import Sequence
from operator import attrgetter
from secrets import token_bytes
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Q

from governance.ledger.rules.entry import FORMAT, EntryText, entry_hash_of_text, moment_text, payload_hash
from governance.ledger.rules.moves import Move, facts_joined, may_join, moves_of
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.actors import ActorKind
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class LedgerEntry(AppendOnlyModel):
    # An entry that is inserted by itself would survive a rollback of what it describes; `insert_together` refuses that.
    ONLY_IN_A_TRANSACTION = True

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    action = models.CharField(max_length=64)
    subject_type = models.CharField(max_length=40)
    subject_id = models.UUIDField()
    actor_kind = models.CharField(max_length=8)
    actor_ref = models.CharField(max_length=64, blank=True)
    reason_code = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    trace_id = models.CharField(max_length=32, blank=True)
    payload: "models.JSONField[Any, Any]" = models.JSONField(
        null=True, help_text="Empty once it was erased by order; its hash stays."
    )
    nonce = models.BinaryField(max_length=16, null=True)
    payload_sha256 = models.BinaryField(max_length=32)
    sha256 = models.BinaryField(max_length=32)
    at = models.DateTimeField()
    # Two defaults: rows from before formats had numbers are of format 1, new ones are of the newest.
    format = models.PositiveSmallIntegerField(default=FORMAT, db_default=1)
    earlier: "models.JSONField[Any, Any]" = models.JSONField(
        null=True, help_text="The moves before the action, in order. Their facts are in the payload."
    )

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "ledger entries"
        constraints = [
            models.CheckConstraint(
                condition=Q(actor_kind__in=[kind.value for kind in ActorKind]), name="ledger_known_actor_kind"
            ),
            # The hash of format 1 does not cover them.
            models.CheckConstraint(condition=Q(earlier__isnull=True) | Q(format__gt=1), name="ledger_moves_are_hashed"),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], name="ledger_by_organization"),
            models.Index(fields=["subject_id", "id"], name="ledger_by_subject"),
            models.Index(
                fields=["organization", "reason_code"],
                condition=~Q(reason_code=""),
                name="ledger_by_reason_code",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.id}"

    @property
    def moves(self) -> list[Move]:
        """What the entry tells, in order."""
        return moves_of(action=self.action, reason_code=self.reason_code, earlier=self.earlier, payload=self.payload)

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.before_insert([self])
        super().save(*args, **kwargs)

    @classmethod
    def before_insert(cls, rows: "Sequence[LedgerEntry]") -> "list[LedgerEntry]":
        """One entry for moves of the same subject and actor at the same moment that come one after the other, each
        with its hashes. The only place where moves are joined: all of `rows` are written by one statement."""
        joined: list[list[LedgerEntry]] = []
        latest: dict[UUID, list[LedgerEntry]] = {}
        for row in rows:
            together = latest.get(row.subject_id)
            if together is None or not _goes_on(together[-1], row):
                together = latest[row.subject_id] = []
                joined.append(together)
            together.append(row)
        return [_finished(together) for together in joined]


# Of an entry's columns, those that all its moves share.
_shared = attrgetter(
    *("organization_id", "subject_type", "actor_kind", "actor_ref", "at", "request_id", "trace_id", "format")
)


def _goes_on(before: LedgerEntry, row: LedgerEntry) -> bool:
    """Whether a row is one more move of the entry that `before` is in."""
    # A reason code belongs to the deciding move, which is the last one: the code's index and its readers find it in
    # the entry's own column.
    return (
        not before.sha256
        and not row.sha256
        and before.reason_code == ""
        and may_join(before.action)
        and may_join(row.action)
        and _shared(before) == _shared(row)
    )


def _finished(together: list[LedgerEntry]) -> LedgerEntry:
    """The one entry of these moves. It has the id of the first: readers order entries by id."""
    entry, last = together[0], together[-1]
    if entry.sha256:  # a statement that failed is sent again
        return entry
    if len(together) > 1:
        entry.earlier = [row.action for row in together[:-1]]
        entry.payload = facts_joined([row.payload for row in together])
        entry.action, entry.reason_code = last.action, last.reason_code
    # The nonce salts the payload's hash: without it a short payload could be guessed from the hash after its erasure.
    entry.nonce = token_bytes(16)
    entry.payload_sha256 = payload_hash(payload=entry.payload, nonce=entry.nonce)
    text = EntryText(
        id=str(entry.id),
        organization_id=str(entry.organization_id) if entry.organization_id else None,
        action=entry.action,
        subject_type=entry.subject_type,
        subject_id=str(entry.subject_id),
        actor_kind=entry.actor_kind,
        actor_ref=entry.actor_ref,
        reason_code=entry.reason_code,
        request_id=entry.request_id,
        trace_id=entry.trace_id,
        at=moment_text(entry.at),
        format=entry.format,
        earlier=entry.earlier,
    )
    entry.sha256 = entry_hash_of_text(text, payload_sha256=entry.payload_sha256)
    return entry
