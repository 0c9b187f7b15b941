"""Calls to a receiver that hangs stop neither the clock nor other receivers. The whole stack, with its real lanes."""

import time
from pathlib import Path

import pytest

from tests.attempts.execution.target import CountingTarget
from tests.stack.homes import seasoned_stack
from tests.stack.support import wait_for
from tests.stack.test_acceptance import World

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]
CALLS = 12
SECONDS = 12


def test_twelve_calls_to_a_receiver_that_hangs_stop_neither_heartbeat_nor_sealer_nor_other_calls(
    seasoned_home: Path,
) -> None:
    hanging, quick = CountingTarget(), CountingTarget()
    hanging.pause = True
    variables = {
        "HOLDPOINT_DEMO_TARGET": quick.url,
        "HOLDPOINT_HTTP_TARGETS": f"demo/demo-once-http={hanging.url}",
        "HOLDPOINT_HTTP_ALLOW_PRIVATE": f"{hanging.host},{quick.host}",
    }
    try:
        with seasoned_stack(seasoned_home, **variables) as stack:
            world = World(stack, quick)
            organization = world.demo["organization"]["slug"]
            slug = world.demo["contracts"]["once_http"]["slug"]
            assert variables["HOLDPOINT_HTTP_TARGETS"].startswith(f"{organization}/{slug}=")
            for _ in range(CALLS):
                assert world.ask("once_http").status_code == 201
            assert hanging.arrived.wait(20)
            worst, ends = 0.0, time.monotonic() + SECONDS
            while time.monotonic() < ends:
                lanes = stack.ready().body["lanes"]
                worst = max(worst, lanes["clock"]["oldest_s"])
                assert lanes["adapters"]["busy"] < lanes["adapters"]["size"] or lanes["adapters"]["busy"] == 0
                time.sleep(0.5)
            assert worst < 8, "the heartbeat or the sealer stood still"
            assert len(hanging.requests) <= 2, "its share is an eighth of the places"
            began = time.monotonic()
            assert world.ask("idempotent_http").status_code == 201
            wait_for(lambda: quick.requests, seconds=10, what="the other receiver")
            assert time.monotonic() - began < 5
    finally:
        hanging.stop()
        quick.stop()
