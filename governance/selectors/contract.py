"""Reading contracts, their readiness boards and what the intake door needs."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject

from governance.models import Contract, ContractDocument, Organization, Policy, ReadinessDecision, Shutdown
from governance.readiness import CORE_FIELDS, AreaStatus, board
from governance.selectors.tenant import tenant_get
from governance.states import PolicyState, ShutdownState
from reasoncodes.actors import Actor
from reasoncodes.errors import NotFound


def contract_list(*, slug: str | None = None, state: str | None = None) -> QuerySet[Contract]:
    rows = Contract.objects.all()
    if slug is not None:
        rows = rows.filter(slug=slug)
    if state is not None:
        rows = rows.filter(state=state)
    return rows


def contract_get(*, contract_id: UUID) -> Contract:
    return tenant_get(Contract, contract_id)


def contract_lock(*, actor: Actor, contract_id: UUID) -> Contract:
    """The row, locked, if the actor may act in its organization."""
    contract = tenant_get(Contract, contract_id, lock=True)
    if not actor.may_act_in(contract.organization_id):
        raise NotFound
    return contract


def contract_documents(*, contract: Contract) -> dict[str, Any]:
    return {row.area: row.document for row in ContractDocument.objects.filter(contract=contract)}


def readiness_board(*, contract: Contract) -> list[AreaStatus]:
    """The ten areas, each with its document, its latest decision and what that amounts to."""
    documents = {row.area: row for row in ContractDocument.objects.filter(contract=contract)}
    latest = {
        row.area: row
        for row in ReadinessDecision.objects.filter(contract=contract)
        .select_related("carried_from__contract")
        .order_by("area", "-id")
        .distinct("area")
    }
    return board(documents=documents, latest=latest, core={name: getattr(contract, name) for name in CORE_FIELDS})


@dataclass(frozen=True, slots=True)
class IntakeFacts:
    """What is known about a request before its body is read, from one query."""

    contract: Contract
    policy_sha256: str
    policy_version: int | None
    shutdowns: tuple[dict[str, Any], ...]


def intake_facts(*, organization: Organization, slug: str, version: str) -> IntakeFacts | None:
    """None when the organization has no such contract version."""
    if not (version.isascii() and version.isdigit() and len(version) < 10):
        return None
    active = Policy.objects.filter(
        organization_id=OuterRef("organization_id"), slug=OuterRef("policy_slug"), state=PolicyState.ACTIVE
    )
    covering = Shutdown.objects.filter(
        Q(organization=None) | Q(organization_id=OuterRef("organization_id")), state=ShutdownState.ENGAGED
    ).values(json=JSONObject(id="id", scope="scope", target="target", drill="drill"))
    row: Any = (
        Contract.objects.filter(organization=organization, slug=slug, version=int(version))
        .annotate(
            policy_sha256=Subquery(active.values("snapshot_sha256")[:1]),
            policy_version=Subquery(active.values("version")[:1]),
            shutdown_rows=ArraySubquery(covering),
        )
        .first()
    )
    if row is None:
        return None
    covers = tuple(
        entry for entry in sorted(row.shutdown_rows, key=lambda entry: entry["id"]) if _covers(entry, row, organization)
    )
    return IntakeFacts(row, row.policy_sha256 or "", row.policy_version, covers)


def _covers(shutdown: dict[str, Any], contract: Contract, organization: Organization) -> bool:
    match shutdown["scope"]:
        case "contract":
            return shutdown["target"] in {contract.slug, f"{contract.slug}/{contract.version}"}
        case "connector":
            return bool(shutdown["target"] == contract.adapter)
        case "region":
            return shutdown["target"] in organization.regions
        case _:
            return True
