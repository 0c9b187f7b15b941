"""A folder of its own for every stack. Not pytest's: PostgreSQL's account must be able to pass through it."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from config.embedded.paths import StackPaths
from config.supervisor.servers import Servers, choose_servers
from tests.stack.support import FACTS, RunningStack, kill_all

SEASONED = "HOLDPOINT_TEST_SEASONED"


@contextmanager
def home_folder() -> Iterator[Path]:
    """An empty HOLDPOINT_HOME; whatever a failed test left running in it is killed."""
    folder = Path(tempfile.mkdtemp(prefix="hp-stack-")).resolve()
    try:
        yield folder / "home"
    finally:
        kill_all(folder)
        shutil.rmtree(folder)


@pytest.fixture
def home() -> Iterator[Path]:
    with home_folder() as folder:
        yield folder


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        os.environ[SEASONED] = f"{Path(tempfile.gettempdir()).resolve()}/hp-seasoned-{uuid4().hex}"


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ[SEASONED], ignore_errors=True)


@pytest.fixture(scope="session")
def seasoned_home() -> Path:
    """A HOLDPOINT_HOME that a stack has come up in and left in order; whoever copies it starts quickly. One for all
    workers of a run: the first one makes it while the others wait."""
    folder = Path(os.environ[SEASONED])
    folder.mkdir(mode=0o711, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "home" / FACTS).exists():
            _season(folder)
    return folder / "home"


def _season(folder: Path) -> None:
    stack = RunningStack(home=folder / "home")
    try:
        stack.start()
        facts = stack.manage("demo", "--json")
        assert stack.finish() == 0
    except BaseException:
        kill_all(folder)
        shutil.rmtree(stack.home)
        raise
    (stack.home / FACTS).write_text(facts)


@contextmanager
def seasoned_copy(seasoned: Path) -> Iterator[Path]:
    with home_folder() as folder:
        subprocess.run(["cp", "-a", str(seasoned), str(folder)], check=True)
        yield folder


@contextmanager
def servers_of(home: Path) -> Iterator[Servers]:
    """PostgreSQL and Valkey of a home, without anything else."""
    servers = choose_servers(paths=StackPaths(home=home), environ={})
    servers.start()
    try:
        yield servers
    finally:
        servers.stop()


@contextmanager
def seasoned_stack(seasoned: Path, **variables: str) -> Iterator[RunningStack]:
    with seasoned_copy(seasoned) as folder:
        stack = RunningStack(home=folder, variables=variables)
        stack.start()
        yield stack
        if not stack.ended:
            assert stack.finish() == 0


@pytest.fixture(scope="module")
def shared_stack() -> Iterator[RunningStack]:
    """One running stack for all tests of a module; a test that ends it starts it again."""
    with home_folder() as folder:
        stack = RunningStack(home=folder, variables={"HOLDPOINT_RESTART_DELAY": "3"})
        stack.start()
        yield stack
        if not stack.ended:
            stack.finish()
