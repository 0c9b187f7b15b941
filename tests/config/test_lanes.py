"""Lanes: every task has one, sizes are settings, a slow tick does not pile up, and readiness says how each stands."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from celery import shared_task
from django.conf import settings
from django.test import Client

from config import lane_places
from config.celery import SCHEDULE
from config.celery import app as celery_app
from config.lane_places import LanePlaces, notes
from config.lanes import LANE_OF, LANES, SingleRuns, lanes_of, queue_of
from config.supervisor.children import COMMANDS
from governance.outside.valkey import valkey


@pytest.mark.unit
def test_every_task_of_ours_has_a_lane_and_every_lane_a_worker_and_a_size() -> None:
    celery_app.loader.import_default_modules()
    apps = {"attempts", "config", "governance", "workflows"}
    ours = {name for name in celery_app.tasks if name.split(".")[0] in apps}
    assert ours - set(LANE_OF) == set()
    assert set(LANE_OF) - ours == set()
    assert sum(len(lane.tasks) for lane in LANES.values()) == len(LANE_OF)
    assert set(settings.LANE_PLACES) == set(LANES) <= set(COMMANDS)
    assert all(lane.words for lane in LANES.values())


@pytest.mark.unit
def test_a_message_goes_to_the_queue_of_its_lane() -> None:
    for task in [name for name, _ in SCHEDULE.values()]:
        routed = celery_app.amqp.router.route({}, task)
        assert routed["queue"].name == queue_of(LANE_OF[task])
    assert LANE_OF["config.tasks.heartbeat"] == LANE_OF["governance.tasks.ledger_seal"] == "clock"
    assert LANE_OF["attempts.tasks.execution.attempt_dispatch"] == "adapters"


@pytest.mark.unit
def test_a_worker_is_as_large_as_the_settings_of_its_lanes_and_without_a_queue_works_for_all() -> None:
    conf = SimpleNamespace()
    lane_places.lane_size(conf=conf, options={"queues": "lane.adapters"})
    assert conf.worker_concurrency == settings.LANE_PLACES["adapters"]
    lane_places.lane_size(conf=conf, options={"queues": ["lane.clock", "lane.evidence"]})
    assert conf.worker_concurrency == settings.LANE_PLACES["clock"] + settings.LANE_PLACES["evidence"]
    lane_places.lane_size(conf=conf, options={})
    assert conf.worker_concurrency == sum(settings.LANE_PLACES.values())
    assert lanes_of(["lane.clock"]) == ["clock"]


@pytest.mark.unit
def test_a_second_run_of_a_task_does_not_begin_and_the_first_one_repeats_itself_once() -> None:
    runs = SingleRuns()
    assert runs.begin("seal")
    assert not runs.begin("seal")
    assert runs.begin("push")
    assert runs.again("seal")
    assert not runs.again("seal")
    runs.end("seal")
    assert runs.begin("seal")
    assert not runs.again("seal")


@pytest.mark.unit
def test_a_tick_that_takes_long_takes_one_thread_however_often_it_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    began, release, counted = threading.Event(), threading.Event(), []

    @shared_task(name="tests.lanes.slow_tick")
    def slow_tick() -> None:
        counted.append(1)
        began.set()
        release.wait(5)

    monkeypatch.setattr("config.lanes.LANE_OF", {**LANE_OF, "tests.lanes.slow_tick": "clock"})
    first = threading.Thread(target=slow_tick)
    first.start()
    assert began.wait(5)
    at = time.monotonic()
    for _ in range(20):
        slow_tick()
    assert time.monotonic() - at < 1
    assert len(counted) == 1
    release.set()
    first.join(5)
    assert len(counted) == 2, "once more, for the rows that came meanwhile"


def test_readiness_names_every_lane_with_its_oldest_work_and_its_places(db: None) -> None:
    valkey().delete(lane_places.KEY)
    answer = Client().get("/health/ready").json()
    assert set(answer["lanes"]) == set(LANES)
    assert all(set(one) == {"oldest_s", "busy", "size"} for one in answer["lanes"].values())
    assert "no worker of the lane clock has been seen" in answer["notes"]


def test_places_are_counted_over_all_workers_and_one_that_is_gone_does_not_count() -> None:
    valkey().delete(lane_places.KEY)
    now = time.time()
    valkey().hset(lane_places.KEY, "clock|one:1", f"2 4 {now:.0f}")
    valkey().hset(lane_places.KEY, "clock|two:9", f"1 4 {now:.0f}")
    valkey().hset(lane_places.KEY, "adapters|two:8", f"3 16 {now - 31:.0f}")
    found = lane_places.lane_places()
    assert (found["clock"], found["adapters"]) == (LanePlaces(3, 8), LanePlaces())


def test_a_worker_notes_what_it_does_and_forgets_itself_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_places, "LOOK_SECONDS", 0.02)
    valkey().delete(lane_places.KEY)
    notes.began("config.tasks.heartbeat")
    notes.start({"clock": 4})
    try:
        _until(lambda: lane_places.lane_places()["clock"] == LanePlaces(1, 4))
        notes.finished("config.tasks.heartbeat")
        _until(lambda: lane_places.lane_places()["clock"] == LanePlaces(0, 4))
    finally:
        notes.stop()
    _until(lambda: lane_places.lane_places()["clock"] == LanePlaces())


def _until(condition: Any) -> None:
    ends = time.monotonic() + 3
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)
