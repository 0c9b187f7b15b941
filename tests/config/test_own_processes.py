"""What only a process of its own shows: each loads the whole application anew, so `make check` leaves them out."""

import os
import re
import subprocess
import sys
from pathlib import Path

from config.embedded.paths import PROJECT
from config.env import BASE_DIR
from tests.production import VARIABLES, minimal_environment


def manage(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_deployment_check_is_clean_with_the_documented_environment(tmp_path: Path) -> None:
    found = manage(minimal_environment(tmp_path), "check", "--deploy", "--fail-level", "WARNING")
    assert found.returncode == 0, found.stderr
    assert "no issues" in found.stdout
    listed = re.search(r"```sh minimal\n(.+?)```", (BASE_DIR / "docs" / "deploy.md").read_text(), re.DOTALL)
    assert listed
    assert set(re.findall(r"^([A-Z_]+)=", listed[1], re.MULTILINE)) == set(VARIABLES)


def test_a_module_that_loosens_productions_settings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loosened.py").write_text(
        "from config.settings.production import *\nDEBUG = True\nLEDGER_WITNESSES = ''\n"
    )
    environment = minimal_environment(tmp_path) | {"DJANGO_SETTINGS_MODULE": "loosened", "PYTHONPATH": str(tmp_path)}
    found = manage(environment, "migrate")
    assert found.returncode != 0
    assert found.stderr.splitlines()[-1].startswith("HOLDPOINT_WITNESSES is missing")
    assert found.stderr.splitlines()[-2].endswith("DJANGO_SETTINGS_MODULE=config.settings.production")


def test_loading_the_application_starts_no_thread_and_connects_to_nothing() -> None:
    """In a process of its own, as `make run` does it: one that forks must have neither."""
    code = "from config.supervisor.programs import load, refuse_unless_forkable; load(); refuse_unless_forkable()"
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings.test", "PYTHONPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
