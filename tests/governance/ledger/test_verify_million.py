"""A million entries: how long sealing and verifying take, and how much memory. Figures go to docs/measurements.md."""

import resource
import time
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from bench.record import record
from governance.sealing.models import LedgerLeaf
from reasoncodes.base.tenancy import every_tenant
from tests.governance.ledger.million import all_sealed, entries_copied
from tests.governance.ledger.record import tampered

COUNT = 1_000_000


def verified(processes: int) -> tuple[float, bool]:
    """Seconds, and whether it fits."""
    began = time.monotonic()
    try:
        call_command("verify_ledger", "--json", "--processes", str(processes), stdout=StringIO())
        fits = True
    except CommandError:
        fits = False
    return round(time.monotonic() - began, 1), fits


def memory_mib(who: int) -> int:
    return resource.getrusage(who).ru_maxrss // 1024


@pytest.mark.soak
@pytest.mark.tampers
@pytest.mark.timeout(3600)
@pytest.mark.django_db(transaction=True)
def test_a_million_entries_are_sealed_and_verified() -> None:
    with every_tenant():
        began = time.monotonic()
        entries_copied(COUNT, organization_id=None)
        made = time.monotonic() - began
        sealing = all_sealed(COUNT)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    before = memory_mib(resource.RUSAGE_SELF)
    two, fits = verified(2)
    figures: dict[str, Any] = {
        "entries": COUNT,
        "made_s": round(made, 1),
        "sealed_s": round(sealing, 1),
        "sealed_per_s": round(COUNT / sealing),
        "verified_s_two_processes": two,
        "goal_s": 60,
        "grown_mib": memory_mib(resource.RUSAGE_SELF) - before,
        "child_peak_mib": memory_mib(resource.RUSAGE_CHILDREN),
    }
    record(name="soak verify_ledger", figures=figures)
    assert fits
    with every_tenant():
        entry = LedgerLeaf.objects.get(position=777_777).entry_id
    tampered(("UPDATE governance_ledgerentry SET reason_code = 'x' WHERE id = %s", [entry]))
    assert verified(2)[1] is False
