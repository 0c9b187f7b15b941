"""`exec --throwaway` runs one command between start and stop of both servers, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded.paths import PROJECT
from tests.stack.support import SUPERVISOR, bare_environment, kill_all, processes_of, wait_for

pytestmark = pytest.mark.stack

SHOW = "import os, sys; print(os.environ['DATABASE_URL'], os.environ['REDIS_URL'], flush=True)"


@pytest.fixture
def temporary(home: Path) -> Iterator[Path]:
    """The temp folder of the commands under test; theirs alone, so that what is left in it is theirs."""
    home.mkdir()
    home.chmod(0o755)
    yield home
    kill_all(home)


def start(temporary: Path, code: str, **variables: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*SUPERVISOR, "exec", "--throwaway", "--", sys.executable, "-c", code],
        cwd=PROJECT,
        env=bare_environment(TMPDIR=str(temporary), **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def nothing_left(temporary: Path) -> bool:
    return list(temporary.iterdir()) == [] and processes_of(temporary) == []


def test_the_command_finds_both_servers_and_nothing_stays(temporary: Path) -> None:
    code = SHOW + "; import psycopg, redis; c = psycopg.connect(os.environ['DATABASE_URL'], autocommit=True)"
    code += "; c.execute('CREATE DATABASE made_by_a_test'); c.close()"
    code += "; r = redis.Redis.from_url(os.environ['REDIS_URL']); print(r.ping()); r.close()"
    with start(temporary, code) as running:
        output, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    assert "True" in output
    assert nothing_left(temporary)


def test_a_failing_command_gives_its_own_exit_code_and_nothing_stays(temporary: Path) -> None:
    with start(temporary, "raise SystemExit(7)") as running:
        running.communicate(timeout=60)
    assert running.returncode == 7
    assert nothing_left(temporary)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_command_and_nothing_stays(temporary: Path, number: int) -> None:
    code = f"import signal, sys; signal.signal({number}, lambda *_: sys.exit(9)); print('waiting', flush=True)"
    with start(temporary, code + "; signal.pause()") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "waiting\n"
        running.send_signal(number)
        running.communicate(timeout=30)
    assert running.returncode == 9
    assert nothing_left(temporary)


def test_servers_of_the_user_are_used_and_none_is_started(temporary: Path) -> None:
    own = {"DATABASE_URL": "postgresql://somebody@db/holdpoint", "REDIS_URL": "redis://broker/0"}
    code = "import subprocess; print(os.listdir(os.environ['HOLDPOINT_HOME']))"
    with start(temporary, f"{SHOW}; {code}", **own) as running:
        output, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    assert output.splitlines()[0].split() == [own["DATABASE_URL"], own["REDIS_URL"]]
    assert "postgres" not in output.splitlines()[1]
    assert nothing_left(temporary)


def test_what_a_killed_run_left_is_removed_by_the_next_one(temporary: Path) -> None:
    with start(temporary, SHOW + "; import time; time.sleep(60)") as killed:
        assert killed.stdout is not None
        killed.stdout.readline()
        killed.kill()
    for command in [one for one in processes_of(temporary) if "sleep(60)" in " ".join(one.cmdline())]:
        command.kill()
    left = list(temporary.iterdir())
    assert left, "a killed run cannot tidy up after itself"
    assert processes_of(temporary) != []
    for folder in left:
        os.utime(folder, (time.time() - 3600, time.time() - 3600))

    with start(temporary, "") as running:
        running.communicate(timeout=60)

    wait_for(lambda: nothing_left(temporary), seconds=10, what="nothing left")
    assert tempfile.gettempdir() != str(temporary)


def test_a_command_that_does_not_exist_is_one_line(temporary: Path) -> None:
    found = subprocess.run(
        [*SUPERVISOR, "exec", "--throwaway", "--", "no-such-program"],
        cwd=PROJECT,
        env=bare_environment(TMPDIR=str(temporary)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode == 127
    assert found.stderr.splitlines() == ["Error: cannot run no-such-program: No such file or directory."]
    assert nothing_left(temporary)
