"""Several webs and workers and two Beats at once: every tick is idempotent, nothing is done twice. One of the webs runs
production's settings: what it serves, and what it refuses to serve with."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
import redis

from config.embedded.paths import PROJECT
from config.supervisor.children import COMMANDS
from tests.attempts.execution.target import CountingTarget
from tests.production import minimal_environment
from tests.stack.homes import seasoned_stack
from tests.stack.support import RunningStack, bare_environment, free_port, wait_for
from tests.stack.test_acceptance import World
from tests.stack.test_make_run import child_pid

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]
OVER_TLS = {"X-Forwarded-Proto": "https", "Host": "holdpoint.clinic.test"}


class Pair:
    """The supervised stack, a second worker and Beat beside it, and a second web as production would run it."""

    def __init__(self, stack: RunningStack, target: CountingTarget, folder: Path) -> None:
        self.stack, self.world, self.folder = stack, World(stack, target), folder
        self.port = free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        local = bare_environment(
            DJANGO_SETTINGS_MODULE="config.settings.local",
            HOLDPOINT_HOME=str(stack.home),
            PORT=str(stack.port),
            HOLDPOINT_DEMO_TARGET=target.url,
        )
        celery = [sys.executable, "-m", "celery", "--app", "config"]
        # One for all lanes: it names no queue.
        worker = [one for one in COMMANDS["clock"][1:] if not one.startswith(("--queues", "--hostname"))]
        self._start("worker", [*celery, *worker, "--concurrency=6", "--hostname=second@%h"], local)
        self._start("beat", [*celery, *COMMANDS["beat"][1:]], local)
        (folder / "metrics").mkdir()
        self._start("web", self.web_command(), self.production())

    def _start(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes.append(subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log))

    @staticmethod
    def web_command() -> list[str]:
        return [sys.executable, "-m", "gunicorn", *COMMANDS["web"][1:]]

    def production(self, **changes: str) -> dict[str, str]:
        """The smallest environment, on the servers of the stack."""
        servers = {
            "DATABASE_URL": self.stack.runtime()["database_url"],
            "REDIS_URL": self.stack.runtime()["redis_url"],
            "SECRET_KEY": (self.stack.home / "secret_key").read_text().strip(),
            "HOLDPOINT_WITNESSES": (self.folder / "heads.jsonl").as_uri(),
            "HOLDPOINT_BIND": f"127.0.0.1:{self.port}",
            "HOLDPOINT_STATIC_ROOT": str(self.folder / "static"),
            "PROMETHEUS_MULTIPROC_DIR": str(self.folder / "metrics"),
            "WEB_CONCURRENCY": "2",
        }
        return minimal_environment(self.folder) | servers | changes

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", headers=OVER_TLS | headers, timeout=20)

    def answers(self) -> bool:
        assert self.processes[-1].poll() is None, (self.folder / "web.log").read_text()[-2000:]
        try:
            return self.get("/health").status_code == 200
        except httpx.HTTPError:
            return False

    def ask_both(self, number: int) -> set[str]:
        """The same request to both webs at once; the ids of what was made of it."""
        route = self.world.demo["contracts"]["once_http"]
        path = f"/api/v1/execution/{route['slug']}/{route['version']}/attempts"
        headers = {
            "Authorization": f"Bearer {self.world.demo['keys']['caller']}",
            "Idempotency-Key": f"two-of-each-{number:04d}",
        }
        body = self.world.demo["attempt_example"]

        def send(port: int) -> httpx.Response:
            url = f"http://127.0.0.1:{port}{path}"
            return httpx.post(url, headers=OVER_TLS | headers if port == self.port else headers, json=body, timeout=30)

        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(send, (self.stack.port, self.port)))
        assert {answer.status_code for answer in answers} <= {201, 409}, [answer.text for answer in answers]
        return {answer.json()["id"] for answer in answers if answer.status_code == 201}

    def close(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(20)


@pytest.fixture(scope="module")
def pair(seasoned_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    target = CountingTarget()
    folder = tmp_path_factory.mktemp("two")
    collected = subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity=0"],
        cwd=PROJECT,
        env=bare_environment(
            DJANGO_SETTINGS_MODULE="config.settings.build", HOLDPOINT_STATIC_ROOT=str(folder / "static")
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert collected.returncode == 0, collected.stderr
    with seasoned_stack(seasoned_home, HOLDPOINT_DEMO_TARGET=target.url) as stack:
        found = Pair(stack, target, folder)
        try:
            wait_for(found.answers, seconds=60, what="production's web")
            yield found
        finally:
            found.close()
    target.stop()


def expire(pair: Pair, count: int) -> list[str]:
    """Held attempts whose reviews have just run out."""
    attempts = [pair.world.ask("hold").json()["id"] for _ in range(count)]
    with psycopg.connect(pair.stack.runtime()["database_owner_url"]) as connection:
        # The owner's right: a trigger keeps deadlines as they are.
        connection.execute("ALTER TABLE attempts_review DISABLE TRIGGER fixed_times")
        connection.execute(
            "UPDATE attempts_review SET expires_at = now() - interval '1 second' WHERE attempt_id = ANY(%s)", [attempts]
        )
        # Before the table is altered again: what waits for the end of the transaction.
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        connection.execute("ALTER TABLE attempts_review ENABLE ALWAYS TRIGGER fixed_times")
    return attempts


def expired_once(pair: Pair, attempts: list[str]) -> bool:
    """Whether all ended; each with one decision of the clock on record, never two."""
    states = [pair.world.attempt(one)["state"] for one in attempts]
    if set(states) != {"preflight-denied"}:
        return False
    found = [Counter(pair.world.actions(one)) for one in attempts]
    assert all(one["review.expired"] == 1 for one in found), found
    return True


def test_two_webs_two_workers_and_two_beats_do_everything_once(pair: Pair) -> None:
    made = [pair.ask_both(number) for number in range(12)]
    assert all(len(ids) == 1 for ids in made)
    ids = [one for found in made for one in found]
    expired = expire(pair, 4)
    for one in ids:
        pair.world.until(one, "completed")
    wait_for(lambda: expired_once(pair, expired), seconds=30, what="both clocks at the same reviews")
    assert set(pair.world.target.effects.values()) == {1}
    assert len(pair.world.target.effects) == len(ids)


def test_when_one_beat_stands_still_the_other_goes_on_and_catching_up_changes_nothing(pair: Pair) -> None:
    valkey: Any = redis.Redis.from_url(pair.stack.runtime()["redis_url"], decode_responses=True)

    def heartbeat() -> float:
        return float(valkey.get("holdpoint:heartbeat"))

    first = psutil.Process(child_pid(pair.stack, "beat"))
    first.suspend()
    try:
        before = heartbeat()
        alone = expire(pair, 2)
        wait_for(
            lambda: float(valkey.get("holdpoint:heartbeat")) > before + 6, seconds=30, what="the other's heartbeat"
        )
        wait_for(lambda: expired_once(pair, alone), seconds=20, what="the other's ticks")
    finally:
        first.resume()
        valkey.close()
    together = expire(pair, 2)
    wait_for(lambda: expired_once(pair, together), seconds=20, what="both again")
    assert expired_once(pair, alone)
    assert pair.get("/health/ready").json()["checks"]["beat"]["status"] == "ok"
    assert all(process.poll() is None for process in pair.processes)


def test_production_serves_static_files_under_hashed_names_and_only_over_tls(pair: Pair) -> None:
    page = pair.get("/")
    assert page.status_code == 200
    assert page.headers["Strict-Transport-Security"].startswith("max-age=31536000")
    names = re.findall(r'"(/static/[^"]+\.(?:css|js))"', page.text)
    assert names
    assert all(re.search(r"\.[0-9a-f]{12}\.(?:css|js)$", name) for name in names)
    file = pair.get(names[0], **{"Accept-Encoding": "gzip"})
    assert file.status_code == 200
    assert "immutable" in file.headers["Cache-Control"]
    assert file.headers["Content-Encoding"] == "gzip"
    plain = pair.get("/admin/login/", **{"X-Forwarded-Proto": "http"})
    assert (plain.status_code, plain.headers["Location"][:8]) == (301, "https://")
    assert pair.get("/", Host="somewhere.else").status_code == 400
    token = minimal_environment(pair.folder)["HOLDPOINT_METRICS_TOKEN"]
    assert pair.get("/metrics").status_code == 401
    assert "holdpoint_heartbeat_age_seconds" in pair.get("/metrics", Authorization=f"Bearer {token}").text
    asked = [sys.executable, "-m", "config.server.healthcheck"]
    assert subprocess.run(asked, cwd=PROJECT, env=pair.production(), check=False).returncode == 0
    assert subprocess.run([*asked, "/nothing"], cwd=PROJECT, env=pair.production(), check=False).returncode == 1
    cookies = pair.get("/admin/login/").headers.get_list("set-cookie")
    assert cookies
    assert all("Secure" in cookie for cookie in cookies)


def refused(pair: Pair, command: list[str], **changes: str) -> str:
    """The last line of a process that will not serve."""
    changes["HOLDPOINT_BIND"] = f"127.0.0.1:{free_port()}"
    done = subprocess.run(
        command, cwd=PROJECT, env=pair.production(**changes), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0, done.stderr
    said = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    logged = [json.loads(line).get("why", "") for line in done.stderr.splitlines() if line.startswith("{")]
    return (said or [""])[-1] or next(filter(None, logged), "")


def test_production_does_not_serve_with_a_role_that_could_change_the_record(pair: Pair) -> None:
    owner = pair.stack.runtime()["database_owner_url"]
    words = "DATABASE_URL's role owns the record's tables"
    worker = [sys.executable, "-m", "celery", "--app", "config", *COMMANDS["adapters"][1:], "--hostname=refused@%h"]
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda command: refused(pair, command, DATABASE_URL=owner), (Pair.web_command(), worker)))
    assert all(words in line for line in said), said
