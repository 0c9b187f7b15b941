"""Reads which receivers are in trouble."""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from attempts.receivers.models import ReceiverCircuit
from attempts.receivers.rules import Circuit

MOST = 1000  # receivers in trouble at once; beyond that they are called as if they were not


class Receiver(NamedTuple):
    """Who is called, by whom. Two organizations that call one host are two receivers."""

    organization_id: UUID
    connector: str
    name: str


def circuits_in_trouble() -> Mapping[Receiver, Circuit]:
    """Of all organizations."""
    rows = ReceiverCircuit.objects.filter(failures__gt=0).order_by("-changed_at")[:MOST]
    return {Receiver(row.organization_id, row.connector, row.receiver): row.circuit for row in rows}


def circuit_open(*, receiver: Receiver) -> ReceiverCircuit | None:
    """The row, if the circuit is open."""
    return ReceiverCircuit.objects.filter(
        organization_id=receiver.organization_id,
        connector=receiver.connector,
        receiver=receiver.name,
        opened_at__isnull=False,
    ).first()


def circuits_open_count() -> int:
    return ReceiverCircuit.objects.filter(opened_at__isnull=False).count()
