"""Is a slot free? If not, the contract says whether the request is denied or waits."""

from typing import Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.names import TAKEN
from governance.enforcement.rules.verdict import EvaluatorResult, allow, deny

NAME: Final = "concurrency"


def evaluate(case: Case) -> EvaluatorResult:
    concurrency = case.facts["concurrency"]
    status, retry_after = concurrency["status"], concurrency.get("retry_after")
    if status in ("ok", TAKEN):
        return allow(NAME, status=status)
    if status == "busy" and concurrency.get("when_busy") == "queue":
        return allow(NAME, status=status, busy=concurrency.get("busy"), queued=True)
    # Busy, not readable, or a status that this version does not know: all of them deny.
    # Older environments do not say which cap it was; their results must come out without it.
    cap = {"cap": concurrency["cap"]} if "cap" in concurrency else {}
    return deny(
        NAME,
        "concurrency_limit",
        status=status if status in ("busy", "unavailable") else "unknown",
        busy=concurrency.get("busy"),
        retry_after=None if retry_after is None else int(retry_after),
        **cap,
    )
