"""The supervisor's parts that need no server: patience, settings, lock, secret, banner."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from config.embedded.paths import PROJECT, StackPaths
from config.embedded.processes import last_words
from config.supervisor import bootstrap
from config.supervisor.environment import compiled_modules, stack_secret_key, write_private
from config.supervisor.errors import StartError
from config.supervisor.lock import FolderLock
from config.supervisor.programs import NotForkable, refuse_unless_forkable
from config.supervisor.readiness import failing
from config.supervisor.run import port_from, seconds_from
from config.supervisor.screen import banner
from config.supervisor.servers import choose_servers
from config.supervisor.watch import LONGEST_DELAY_SECONDS, STEADY_AFTER_SECONDS, Watch

pytestmark = pytest.mark.unit


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Fragile:
    """A process that lives or not as the test says."""

    name = "fragile"

    def __init__(self) -> None:
        self.lives = True
        self.starts = 0
        self.can_start = True

    def alive(self) -> bool:
        return self.lives

    def start(self) -> None:
        self.starts += 1
        if not self.can_start:
            raise OSError("no room")
        self.lives = True


class Watching:
    """A watch over one fragile process, with what it said."""

    def __init__(self, *, first_delay: float) -> None:
        self.clock, self.one, self.said = Clock(), Fragile(), list[str]()
        self.watch = Watch(
            watched=[self.one], first_delays={"fragile": first_delay}, say=self.said.append, clock=self.clock
        )

    def after(self, seconds: float) -> None:
        self.clock.now += seconds
        self.watch.look()

    def dies(self) -> None:
        self.one.lives = False
        self.after(0)


def test_a_process_that_ends_is_started_again_after_its_delay() -> None:
    w = Watching(first_delay=5)
    w.dies()
    w.after(4.9)
    assert w.one.starts == 0
    w.after(0.2)
    assert w.one.starts == 1
    assert w.said == ["fragile ended unexpectedly; starting it again in 5 s", "fragile runs again"]


def test_a_process_that_somebody_else_started_meanwhile_is_left_to_run() -> None:
    w = Watching(first_delay=5)
    w.dies()
    w.one.lives = True
    w.after(60)
    assert w.one.starts == 0
    assert w.said[-1] == "fragile runs again"


def test_the_delay_grows_while_it_keeps_ending_and_has_an_end() -> None:
    w = Watching(first_delay=1)
    delays = []
    for _ in range(8):
        w.dies()
        delays.append(float(w.said[-1].split(" in ")[1].removesuffix(" s")))
        w.after(delays[-1] + 0.1)
    assert delays == [1, 2, 4, 8, 16, LONGEST_DELAY_SECONDS, LONGEST_DELAY_SECONDS, LONGEST_DELAY_SECONDS]


def test_the_delay_is_short_again_after_a_steady_time() -> None:
    w = Watching(first_delay=1)
    w.dies()
    w.after(1)
    w.dies()
    w.after(2)
    w.clock.now += STEADY_AFTER_SECONDS + 1
    w.dies()
    assert w.said[-1].endswith("in 1 s")


def test_a_start_that_fails_is_said_and_tried_again() -> None:
    w = Watching(first_delay=1)
    w.one.can_start = False
    w.dies()
    w.after(1)
    assert w.said[-1] == "fragile does not start, next try in 2 s: no room"
    w.one.can_start = True
    w.after(2)
    assert w.one.lives


@pytest.mark.parametrize("value", ["0", "65536", "-1", "eighty", "8000.5", " 8000"])
def test_a_port_that_is_none_is_refused_in_one_line(value: str) -> None:
    with pytest.raises(StartError, match="PORT must be a number"):
        port_from(value)


def test_the_port_is_8000_unless_something_else_is_asked_for() -> None:
    assert (port_from(None), port_from(""), port_from("8123")) == (8000, 8000, 8123)


def test_a_restart_delay_that_is_no_number_is_refused() -> None:
    assert seconds_from("2.5", default=1.0) == 2.5
    with pytest.raises(StartError, match="HOLDPOINT_RESTART_DELAY"):
        seconds_from("soon", default=1.0)


def test_home_is_absolute_and_var_in_the_project_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert StackPaths.from_setting(value=None).home == PROJECT / "var"
    assert StackPaths.from_setting(value="data").home == tmp_path.resolve() / "data"


def test_the_lock_is_free_again_when_its_holder_is_killed(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from config.supervisor.lock import FolderLock\n"
    code += "FolderLock(file=Path(sys.argv[1])).take(note='pid 1'); print('held', flush=True); input()"
    file = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(file)], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StartError, match=r"already runs from .* \(pid 1\)"):
            FolderLock(file=file).take(note="pid 2")
        holder.kill()
    mine = FolderLock(file=file)
    mine.take(note="pid 2")
    assert file.read_text() == "pid 2"
    mine.release()


def test_the_secret_is_made_once_and_is_private(tmp_path: Path) -> None:
    paths = StackPaths(home=tmp_path)
    first = stack_secret_key(paths=paths)
    assert len(first) >= 50
    assert stack_secret_key(paths=paths) == first
    assert stat.S_IMODE(paths.secret_key_file.stat().st_mode) == 0o600


def test_a_private_file_is_replaced_whole_and_leaves_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "facts"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["facts"]


def test_compiled_modules_unwanted_beside_the_sources_are_kept_in_the_venv() -> None:
    assert compiled_modules(inherited={}) == {}
    kept = compiled_modules(inherited={"PYTHONDONTWRITEBYTECODE": "1"})
    assert kept == {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(PROJECT / ".venv" / "compiled")}


def test_own_servers_are_used_as_given_and_each_counts_for_itself(tmp_path: Path) -> None:
    paths = StackPaths(home=tmp_path)
    both = choose_servers(paths=paths, environ={})
    assert [one.name for one in both.embedded] == ["postgres", "valkey"]
    assert both.application_role == "holdpoint_app"

    broker_only = choose_servers(paths=paths, environ={"DATABASE_URL": "postgresql://me@db/x"})
    assert [one.name for one in broker_only.embedded] == ["valkey"]
    assert broker_only.database_owner_url == broker_only.database_url == "postgresql://me@db/x"
    assert broker_only.application_role == ""

    owner = {"DATABASE_URL": "postgresql://app@db/x", "DATABASE_OWNER_URL": "postgresql://own@db/x"}
    none = choose_servers(paths=paths, environ={**owner, "REDIS_URL": "redis://q/0"})
    assert none.embedded == []
    assert (none.application_role, none.redis_url) == ("app", "redis://q/0")


def test_failing_checks_are_named() -> None:
    checks = {"database": {"status": "failing"}, "broker": {"status": "ok"}, "beat": {"status": "failing"}}
    assert failing(json.dumps({"checks": checks}).encode()) == "database, beat"
    assert failing(b"<html>") == "an unexpected answer"


def test_the_banner_shows_address_and_logins() -> None:
    users = {"admin": {"username": "admin", "password": "a-password"}}
    text = banner(demo={"users": users}, base_url="http://127.0.0.1:8000", logs="var/logs", seconds=4.2)
    for expected in (
        "http://127.0.0.1:8000/admin/",
        "http://127.0.0.1:8000/api/docs/",
        "a-password",
        "Ctrl-C",
    ):
        assert expected in text


def test_packages_are_installed_again_only_when_the_lock_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHON", "STAMP", "REQUIREMENTS"):
        monkeypatch.setattr(bootstrap, name, tmp_path / name)
    (tmp_path / "PYTHON").touch()
    (tmp_path / "REQUIREMENTS").write_text("django==5.2.19")
    assert not bootstrap.is_installed()
    (tmp_path / "STAMP").write_text(bootstrap.wanted())
    assert bootstrap.is_installed()
    (tmp_path / "REQUIREMENTS").write_text("django==5.2.20")
    assert not bootstrap.is_installed()


def test_with_a_thread_there_is_no_fork() -> None:
    end = threading.Event()
    other = threading.Thread(target=end.wait, name="one-too-many")
    other.start()
    try:
        with pytest.raises(NotForkable, match="one-too-many"):
            refuse_unless_forkable()
    finally:
        end.set()
        other.join()


def test_the_last_words_of_a_program_are_its_exception(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_words(log) == ""
    log.write_text('Traceback:\n  File "x.py"\nErrors: connection refused\n\tIs the server running?\n\n')
    assert last_words(log) == "Errors: connection refused"
