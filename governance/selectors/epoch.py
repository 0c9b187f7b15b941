"""The current epoch, where each began, and whether the record is denied."""

from governance.ledger.epoch import FIRST, EpochBegin
from governance.models import LedgerEpoch, Shutdown
from governance.states import LEDGER_INCONSISTENT, ShutdownScope, ShutdownState
from reasoncodes.tenancy import every_tenant


def epoch_current() -> int:
    newest = LedgerEpoch.objects.order_by("-number").values_list("number", flat=True).first()
    return newest or FIRST


def epoch_mark() -> str:
    """What leases carry. The time is part of it: without witnesses a number could be given out twice."""
    row = LedgerEpoch.objects.order_by("-number").first()
    return f"{row.number}.{int(row.begun_at.timestamp())}" if row else str(FIRST)


def epoch_list() -> list[LedgerEpoch]:
    return list(LedgerEpoch.objects.order_by("number"))


def epoch_begins() -> list[EpochBegin]:
    return [EpochBegin(row.number, row.kept, row.lost_to) for row in epoch_list()]


def ledger_denial() -> Shutdown | None:
    """The shutdown of deny mode, while it is engaged. Its `preview` says what was found."""
    with every_tenant():
        rows = Shutdown.objects.filter(
            scope=ShutdownScope.GLOBAL, state=ShutdownState.ENGAGED, target=LEDGER_INCONSISTENT
        )
        return rows.order_by("id").first()
