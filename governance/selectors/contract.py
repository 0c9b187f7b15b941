"""Reading contracts and their readiness boards."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from governance.models import Contract, ContractDocument, ReadinessDecision
from governance.readiness import CORE_FIELDS, AreaStatus, board
from governance.selectors.tenant import tenant_get
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
