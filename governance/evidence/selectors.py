"""Reads evidence bundles, what goes into one from governance's own tables, and the proofs of its ledger entries. Rows
of attempts and runs come from the collectors in `hooks`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from governance.enforcement.models import EnforcementDecision, snapshot_load
from governance.evidence.models import EvidenceBundle
from governance.evidence.rules import CollectedEntry, Person, canonical_plain
from governance.ledger.models import LedgerEntry
from governance.ledger.rules.actions import wording
from governance.ledger.rules.entry import FORMATS
from governance.people.models import PersonReference, ServiceAccount
from governance.record.models import RowShape
from governance.record.rules.items import FORGOTTEN, BoundItem, items_read
from governance.record.rules.tables import BOUND
from governance.record.sql import quoted
from governance.retention.models import ErasedPayload
from governance.sealing.adapters.base import Cosigner
from governance.sealing.models import LedgerCheckpoint, LedgerLeaf
from governance.sealing.rules.merkle import inclusion_proof
from governance.sealing.rules.merkle.tree import Node, inclusion_nodes
from governance.sealing.selectors.cosignatures import cosignatures_of
from governance.sealing.selectors.keys import handovers_to, key_verifier
from governance.sealing.selectors.tree import nodes_read
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.errors import NotFound
from reasoncodes.base.tenancy import every_tenant
from sdk import holdpoint_verify as verifier

COMMITMENT = re.compile(r"[0-9a-f]{64}")
PERSON_KEYS = ("voter_ref", "on_behalf_of_ref", "found_by_ref", "resolved_by_ref")
SNAPSHOTS = ("contract_sha256", "policy_sha256", "region_sha256")
DECISION = (
    *("id", "contract_id", "verdict", "reason_code", "rule_id", "policy_version", "results", "approval"),
    *("request", "environment", "request_sha256", "environment_sha256", "at", "act", "subject_id"),
)
# Bundles per run of the scheduled task; the rest waits two seconds.
BATCH = 100
# With the server's clock, `statement_timestamp()`: it does not depend on which worker asks. The partial index
# `evidence_unfinished` serves it.
DUE = """
SELECT id FROM governance_evidencebundle
WHERE state IN ('requested', 'building') AND resume_at <= statement_timestamp() ORDER BY resume_at LIMIT %s
"""

DUE_LAG = """
SELECT extract(epoch FROM statement_timestamp() - resume_at) FROM governance_evidencebundle
WHERE state IN ('requested', 'building') AND resume_at <= statement_timestamp() ORDER BY resume_at LIMIT 1
"""


def bundle_list(*, state: str | None = None, subject_id: UUID | None = None) -> QuerySet[EvidenceBundle]:
    """Newest first, without the collected data, which can be large."""
    rows = EvidenceBundle.objects.defer("draft").order_by("-id")
    rows = rows.filter(state=state) if state is not None else rows
    return rows.filter(subject_id=subject_id) if subject_id is not None else rows


def bundle_get(*, bundle_id: UUID) -> EvidenceBundle:
    return tenant_get(EvidenceBundle, bundle_id)


def bundle_newest(*, kind: str, subject_id: UUID) -> EvidenceBundle | None:
    return bundle_list(subject_id=subject_id).filter(subject_kind=kind).first()


def bundle_newest_or_404(*, kind: str, subject_id: UUID) -> EvidenceBundle:
    found = bundle_newest(kind=kind, subject_id=subject_id)
    if found is None:
        raise NotFound("No evidence was requested yet. Send a POST to this URL to request it.")
    return found


def bundles_due() -> list[UUID]:
    """Unfinished bundles that no worker is building: they wait for the sealer or the storage, the wake-up was lost, or
    the worker died."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, [BATCH])
        return [row[0] for row in cursor.fetchall()]


def bundles_lag() -> float:
    """Seconds since the oldest unfinished bundle could go on; 0 if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(DUE_LAG)
        found = cursor.fetchone()
    return float(found[0]) if found else 0.0


def bundles_to_remove() -> list[UUID]:
    """Erased bundles whose file may still be in the storage."""
    rows = EvidenceBundle.objects.filter(state="erased", removed_at=None, resume_at__lte=Now())
    return list(rows.order_by("resume_at").values_list("id", flat=True)[:BATCH])


def requester_name(*, bundle: EvidenceBundle) -> str:
    """Who requested the bundle, in words for people."""
    actor = {"actor_kind": bundle.actor_kind, "actor_ref": bundle.requested_by_ref}
    found = people_collected(organization_id=bundle.organization_id, rows=[actor])
    if bundle.actor_kind == "person":
        return found[0].name if found and found[0].name else "a person (reference erased)"
    return f"{found[0].name} (service)" if found else bundle.actor_kind


def built_sha256(*, bundle: EvidenceBundle) -> str:
    """The file's hash from the ledger."""
    # The bundle's row has it too, but that row can be updated: a person who alters the file could alter both.
    entry = LedgerEntry.objects.filter(subject_id=bundle.id, action="evidence.built").first()
    return str(entry.payload["sha256"]) if entry is not None and entry.payload else bundle.sha256


# -- what goes in ------------------------------------------------------------------------------------------------------
def entries_about(*, organization_id: UUID, subjects: Iterable[UUID]) -> list[LedgerEntry]:
    """Ledger entries about these subjects, oldest first."""
    with every_tenant():
        return list(_entries(organization_id, subjects))


def entries_count(*, organization_id: UUID, subjects: Iterable[UUID]) -> int:
    with every_tenant():
        return _entries(organization_id, subjects).count()


def _entries(organization_id: UUID, subjects: Iterable[UUID]) -> QuerySet[LedgerEntry]:
    # Of this organization only: when another one tries to reach our subject and is refused, the entry is theirs. The
    # passkeys that people signed with belong to no organization.
    of = Q(organization_id=organization_id) | Q(organization_id=None, subject_type="passkey")
    return LedgerEntry.objects.filter(of, subject_id__in=list(subjects)).order_by("id")


def entry_collected(entry: LedgerEntry, rows: Sequence[str] = ()) -> CollectedEntry:
    """`rows`: the parts of the rows bound to it, in hexadecimal."""
    document = {
        "id": entry.id,
        "organization": entry.organization_id,
        "action": entry.action,
        "subject_type": entry.subject_type,
        "subject_id": entry.subject_id,
        "actor_kind": entry.actor_kind,
        "actor_ref": entry.actor_ref,
        "reason_code": entry.reason_code,
        "request_id": entry.request_id,
        "trace_id": entry.trace_id,
        "at": entry.at,
        "payload": entry.payload,
        "nonce": bytes(entry.nonce).hex() if entry.payload is not None and entry.nonce is not None else None,
        "payload_sha256": bytes(entry.payload_sha256).hex(),
        "sha256": bytes(entry.sha256).hex(),
        "rows": list(rows),
    }
    # Entries of format 1 stay as they were in older bundles.
    if entry.format > 1:
        document |= {"format": FORMATS[entry.format], "earlier": entry.earlier or []}
    return CollectedEntry(canonical_plain(document), [(wording(move.action), move.reason_code) for move in entry.moves])


def decisions_collected(*, decision_ids: Sequence[UUID]) -> list[dict[str, Any]]:
    """Decisions with everything that is needed to compute them again. May raise SnapshotBroken."""
    rows = EnforcementDecision.objects.filter(id__in=decision_ids).order_by("id")
    return [canonical_plain({name: getattr(row, name) for name in DECISION}) for row in rows]


def snapshots_collected(*, decisions: list[dict[str, Any]], more: Iterable[str]) -> list[dict[str, Any]]:
    named = {row["environment"].get(name) for row in decisions for name in SNAPSHOTS}
    return [{"sha256": one, "document": snapshot_load(one)} for one in sorted(filter(None, {*named, *more}))]


def people_collected(*, organization_id: UUID, rows: Sequence[Any]) -> list[Person]:
    """People and services that the rows name. A person whose `PersonReference` was destroyed has only the
    commitment."""
    commitments, services = _references(rows)
    known = PersonReference.objects.filter(commitment__in=commitments).select_related("user")
    open_ones = {
        row.commitment: Person(
            "person",
            row.commitment,
            row.user.get_full_name() or row.user.username,
            {"user_id": str(row.user_id), "salt": bytes(row.salt).hex()},
        )
        for row in known
    }
    people = [open_ones.get(one) or Person("person", one) for one in sorted(commitments)]
    accounts = ServiceAccount.objects.filter(organization_id=organization_id, id__in=services).order_by("id")
    return people + [Person("service", str(account.id), account.slug) for account in accounts]


def _references(rows: Sequence[Any]) -> tuple[set[str], set[str]]:
    commitments: set[str] = set()
    services: set[str] = set()
    for row in rows:
        found = [row[key] for key in PERSON_KEYS if row.get(key)]
        found += [one["ref"] for one in row.get("excluded", [])]
        if row.get("actor_kind") == "person":
            found.append(row["actor_ref"])
        if row.get("actor_kind") == "service":
            services.add(row["actor_ref"])
        if row.get("caller_id"):
            services.add(str(row["caller_id"]))
        commitments.update(one for one in found if COMMITMENT.fullmatch(one))
    return commitments, services


def payloads_taken(*, entries: Sequence[Any]) -> list[str]:
    """Of these entries: the ids of those whose payload is gone although no order erased it."""
    gone = {entry["id"] for entry in entries if entry["payload"] is None}
    if not gone:
        return []
    with every_tenant():
        ordered = set(ErasedPayload.objects.filter(entry_id__in=gone).values_list("entry_id", flat=True))
    return sorted(gone - {str(one) for one in ordered})


# -- bound rows --------------------------------------------------------------------------------------------------------
# All entries of the transactions that wrote these, with the rows bound to them. One index, (txid, id), serves it.
TOGETHER = """
SELECT other.id, bound.part, bound.rows, bound.salts
FROM governance_ledgerentry other JOIN governance_boundrows bound ON bound.entry_id = other.id
WHERE other.txid IN (SELECT entry.txid FROM governance_ledgerentry entry WHERE entry.id = ANY(%s))
ORDER BY other.id, bound.part
"""
# For rows that were changed without an entry about their subject, such as a heartbeat: the database wrote one itself.
# Only since the subject's first entry: the table is as long as the ledger.
ALONE = """
SELECT entry.id, bound.part, bound.rows, bound.salts
FROM governance_ledgerentry entry JOIN governance_boundrows bound ON bound.entry_id = entry.id
WHERE entry.action = 'record.rows_changed' AND entry.id >= %s
    AND EXISTS (SELECT FROM unnest(%s::bytea[]) one WHERE position(one IN bound.rows) > 0)
ORDER BY entry.id, bound.part
"""


@dataclass(frozen=True, slots=True)
class Bound:
    """Bound rows by entry, in hexadecimal; and of each row the versions, with entry, digest and salt."""

    parts: dict[str, list[str]]
    versions: dict[tuple[int, str], dict[int, tuple[str, BoundItem]]]


def rows_bound(*, entry_ids: Sequence[UUID], more: Sequence[UUID] = ()) -> Bound:
    """What the transactions of these entries wrote, and what was written to the rows `more` without an entry of their
    own since the first of them."""
    found = Bound({}, {})
    with connection.cursor() as cursor:
        cursor.execute(TOGETHER, [list(entry_ids)])
        rows = cursor.fetchall()
        if more and entry_ids:
            cursor.execute(ALONE, [min(entry_ids), [one.bytes for one in more]])
            rows += cursor.fetchall()
    for entry_id, _, raw, salts in rows:
        found.parts.setdefault(str(entry_id), []).append(bytes(raw).hex())
        for item in items_read(bytes(raw), bytes(salts or b"")):
            key = (item.number, verifier.row_id(item.row_id))
            found.versions.setdefault(key, {})[item.version] = (str(entry_id), item)
    return found


def images_collected(*, rows: Mapping[str, Sequence[Mapping[str, Any]]], bound: Bound) -> list[dict[str, Any]]:
    """The rows of the bundle as the database has them now, each with the entry that covers this version of it. A row
    whose version no entry here covers is left out: it is not bound."""
    found = []
    for file, (_, table, _) in sorted(verifier.TABLES.items()):
        ids = [str(row["id"]) for row in rows[file]]
        shapes = {row.shape: row for row in RowShape.objects.filter(number=BOUND[table].number)} if ids else {}
        for shape in shapes.values():
            for id_, version, image in _images(shape, ids):
                entry_id, item = bound.versions.get((shape.number, id_), {}).get(version, ("", None))
                if item is None or item.shape != shape.shape or item.salt == FORGOTTEN:
                    continue
                found.append(
                    {
                        "table": shape.number,
                        "name": table,
                        "id": id_,
                        "version": version,
                        "entry": entry_id,
                        "salt": item.salt.hex() if item.salt else None,
                        "image": image,
                    }
                )
    return found


def _images(shape: RowShape, ids: Sequence[str]) -> list[tuple[str, int, str]]:
    columns = ", ".join(quoted(name) for name in shape.columns)
    version = "row_version" if "row_version" in shape.columns else "1"
    # Names of tables and columns come from the registry of bound tables, not from a request.
    text = f"""
        SELECT {quoted(shape.key)}::text, {version},
            (SELECT row_to_json(only_these)::text FROM (SELECT {columns}) AS only_these)
        FROM public.{quoted(shape.table)} WHERE {quoted(shape.key)} = ANY(%s::uuid[]) ORDER BY 1
    """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(text, [list(ids)])
        return list(cursor.fetchall())


def carriers_collected(*, entry_ids: Sequence[str], bound: Bound) -> list[dict[str, Any]]:
    """Entries about something else to which rows of the bundle are bound; without what they say."""
    with every_tenant():
        entries = LedgerEntry.objects.filter(id__in=entry_ids).order_by("id")
        documents = [entry_collected(entry).document for entry in entries]
    return [one | {"payload": None, "nonce": None, "rows": bound.parts[one["id"]]} for one in documents]


# -- under the seal ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Sealed:
    """Position and proof of each entry in one signed head: the oldest that covers them all."""

    checkpoint: LedgerCheckpoint
    keys: str
    """The verifier key of the head, and below it the handovers that lead to it."""
    places: dict[str, tuple[int, list[str]]]
    cosignatures: tuple[str, ...] = ()

    @property
    def cosigned(self) -> str:
        """The signed head with the lines of the witnesses below: still one C2SP checkpoint."""
        return self.checkpoint.text + "".join(f"{line}\n" for line in self.cosignatures)


def entries_sealed(*, entry_ids: Sequence[UUID], cosigners: Sequence[Cosigner] = ()) -> Sealed | None:
    """Proofs of these entries; None while one of them is not sealed. With what the cosigners said about the head."""
    positions = dict(LedgerLeaf.objects.filter(entry_id__in=entry_ids).values_list("entry_id", "position"))
    if len(positions) < len(set(entry_ids)):
        return None
    # The oldest such head, not the newest: building again later gives the same bytes.
    heads = LedgerCheckpoint.objects.select_related("key").filter(size__gt=max(positions.values()))
    head = heads.order_by("size").first()
    if head is None:
        return None
    proofs = _proofs(list(positions.values()), head.size)
    handovers = handovers_to(key_id=head.key_id, size=head.size)
    keys = "\n".join([key_verifier(head.key), *(one.line for one in handovers)])
    places = {str(id_): (place, proofs[place]) for id_, place in positions.items()}
    lines = cosignatures_of(heads=[head], cosigners=cosigners).get(head.size, [])
    return Sealed(head, keys, places, tuple(line for _, line in lines))


def _proofs(positions: Sequence[int], size: int) -> dict[int, list[str]]:
    """The proof of each position. Neighbours share nodes, so all nodes are read at once."""
    wanted = {node for place in positions for group in inclusion_nodes(place, size) for node in group}
    order = sorted(wanted)
    known: dict[Node, bytes] = dict(zip(order, nodes_read(order), strict=True))

    def read(nodes: Sequence[Node]) -> list[bytes]:
        return [known[node] for node in nodes]

    return {place: [one.hex() for one in inclusion_proof(index=place, size=size, read=read)] for place in positions}
