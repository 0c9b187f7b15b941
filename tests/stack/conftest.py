"""A folder of its own for every stack. Not pytest's: PostgreSQL's account must be able to pass through it."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.stack.support import RunningStack, kill_all


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


@pytest.fixture(scope="session")
def seasoned_home() -> Iterator[Path]:
    """A HOLDPOINT_HOME that a stack has come up in and left in order; whoever copies it starts quickly."""
    with home_folder() as folder:
        stack = RunningStack(home=folder)
        stack.start()
        assert stack.finish() == 0
        yield folder


@contextmanager
def seasoned_stack(seasoned: Path, **variables: str) -> Iterator[RunningStack]:
    with home_folder() as folder:
        subprocess.run(["cp", "-a", str(seasoned), str(folder)], check=True)
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
