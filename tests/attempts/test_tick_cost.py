"""A tick costs what is due, not what waits: the same pages are read with a thousand and with a million waiting rows."""

import re
import time
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from attempts.execution.services.lease_expire import DUE, START
from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from bench.record import record
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import HOLD, open_contract

WAITING = (1_000, 1_000_000)
DUE_ROWS = 100


def copy_rows(table: str, source: Any, count: int, **columns: str) -> None:
    """`count` copies of one row with new ids; `columns` are SQL expressions over `n`, the number of the copy."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
            " AND table_schema = current_schema() ORDER BY ordinal_position",
            [table],
        )
        names = [name for (name,) in cursor.fetchall()]
        chosen = {"id": "gen_random_uuid()"} | columns
        values = ", ".join(chosen.get(name, f"row.{name}") for name in names)
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {values}"  # noqa: S608
            f" FROM {table} row, generate_series(1, {count}) n WHERE row.id = %s",
            [source],
        )


def cost(sql: str, params: Any) -> dict[str, Any]:
    """Pages touched and rows found, by EXPLAIN ANALYZE."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", params)
        text = "\n".join(line for (line,) in cursor.fetchall())
    first = text.splitlines()
    buffers = next(line for line in first if "Buffers:" in line)
    pages = sum(int(number) for number in re.findall(r"(?:hit|read)=(\d+)", buffers))
    rows = int(float(re.search(r"actual time=\S+ rows=([\d.]+)", text)[1]))  # type: ignore[index]
    milliseconds = float(re.search(r"Execution Time: ([\d.]+)", text)[1])  # type: ignore[index]
    return {"pages": pages, "rows": rows, "ms": milliseconds, "plan": text}


@pytest.mark.soak
@pytest.mark.tampers
@pytest.mark.timeout(1800)
def test_ticks_read_the_same_with_a_thousand_and_a_million_waiting(cast: Cast) -> None:
    open_contract(cast, rules=HOLD)
    caller = cast.api("attempts:create")
    held = post(caller, body(runtime_mode="shadow")).json()["id"]
    found: dict[str, dict[str, Any]] = {}
    with every_tenant():
        attempt, review = Attempt.objects.get(id=held), Review.objects.get(attempt_id=held)
        released = {"state": "'approved-for-execution'"}
        copy_rows("attempts_attempt", attempt.id, DUE_ROWS, **released, lease_expires_at="now() - interval '1 minute'")
        copy_rows("attempts_attempt", attempt.id, DUE_ROWS, **released, next_eligible_at="now() - interval '1 minute'")
        made = 0
        for total in WAITING:
            began = time.monotonic()
            later = f"now() + interval '1 day' + ({made} + n) * interval '1 second'"
            half = (total - made) // 2
            copy_rows("attempts_attempt", attempt.id, half, **released, lease_expires_at=later)
            copy_rows("attempts_attempt", attempt.id, total - made - half, **released, next_eligible_at=later)
            made = total
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE attempts_attempt")
            found[f"{total}"] = {
                "filled_s": round(time.monotonic() - began, 1),
                "leases": cost(DUE, [*START, 100]),
                "retries": cost(*retries_sql()),
            }
    record(name="soak tick cost", figures=found)
    few, many = (found[f"{total}"] for total in WAITING)
    for tick in ("leases", "retries"):
        assert few[tick]["rows"] == many[tick]["rows"] == DUE_ROWS
        assert many[tick]["pages"] <= few[tick]["pages"] * 2 + 20, found
    assert review.expires_at is not None
    assert review.expires_at > timezone.now()


def retries_sql() -> tuple[str, Any]:
    return (
        "SELECT id FROM attempts_attempt WHERE state = 'approved-for-execution' AND next_eligible_at <= now()"
        " AND queued_until IS NULL ORDER BY next_eligible_at LIMIT 200",
        [],
    )
