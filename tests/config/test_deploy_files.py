"""docs/deploy: every command, path, variable and metric in it exists. Images are not built here; what they run is."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands
from django.db import connection
from django.test import Client
from gunicorn.config import Config

from config.database_role import role_fault
from config.embedded.postgres_cluster import binaries
from config.lanes import LANES
from config.safety import PLACEHOLDER
from config.supervisor.children import COMMANDS
from tests.config.test_docs import ROOT, anchors, variables_in_tables
from tests.governance.ledger.cosigner import running_witness
from tests.production import VARIABLES

FILES = ROOT / "docs" / "deploy"
METRIC = re.compile(r"\b(?:holdpoint|workflow)_[a-z_]+")
HARDENED = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}


def dockerfile() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (FILES / "Dockerfile").read_text())
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    return [(words[0], words[1]) for words in lines]


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((FILES / "compose.yaml").read_text()))


def commands() -> Iterator[list[str]]:
    """Everything that an image, a service or a unit runs of ours."""
    for word, rest in dockerfile():
        if word == "CMD":
            yield json.loads(rest)
        if word == "HEALTHCHECK":
            yield json.loads(rest[rest.index("[") :])
        if word == "RUN" and "manage.py" in rest:
            yield shlex.split(rest)[1:]
    for service in compose()["services"].values():
        command = service.get("command", [])
        if command[:2] == ["sh", "-c"]:
            yield from (shlex.split(one) for one in command[2].split("&&"))
        elif command and command[0] not in {"postgres", "valkey-server"}:
            yield command
    for unit in sorted((FILES / "systemd").glob("*.service")):
        line = re.search(r"^ExecStart=(.+)$", unit.read_text(), re.MULTILINE)
        assert line, unit
        for instance in LANES if unit.stem.endswith("@") else [""]:
            yield shlex.split(line[1].replace("%i", instance).replace("%%", "%"))


def lane_of(arguments: list[str]) -> str:
    """Under which name `make run` has this command: beat, or the lane whose queue the worker has."""
    queues = [one.removeprefix("--queues=lane.") for one in arguments if one.startswith("--queues=")]
    return queues[0] if queues else arguments[3]


@pytest.mark.unit
def test_every_lane_has_a_worker_in_the_container_files_and_a_unit() -> None:
    lanes = [lane_of(arguments) for _, *arguments in commands() if "worker" in arguments]
    # The unit of systemd is written for one lane: %i is its instance.
    assert sorted(lanes) == sorted([*LANES, *LANES])


@pytest.mark.unit
def test_every_command_in_the_container_and_unit_files_can_be_run() -> None:
    seen = set()
    for program, *arguments in commands():
        name = Path(program).name
        seen.add(name)
        assert (Path(sys.executable).parent / name).exists(), program
        if name == "python" and arguments[0] == "manage.py":
            assert arguments[1] in get_commands(), arguments
            seen.add(arguments[1])
        elif name == "python":
            assert arguments[0] == "-m"
            assert (ROOT / (arguments[1].replace(".", "/") + ".py")).exists()
        elif name == "gunicorn":
            parsed = Config().parser().parse_args(arguments)
            assert (ROOT / parsed.config).exists()
            assert parsed.args == ["config.wsgi:application"]
        else:
            assert arguments[:3] == ["--app", "config", "--skip-checks"]
            assert set(arguments[3:]) <= set(COMMANDS[lane_of(arguments)]), arguments
    ours = {"collectstatic", "migrate", "grant_application_role", "consume_events"}
    assert seen == {"python", "gunicorn", "celery"} | ours


@pytest.mark.unit
def test_the_image_is_small_pinned_and_does_not_run_as_root() -> None:
    lines = dockerfile()
    assert [rest for word, rest in lines if word == "USER"] == ["10001:10001"]
    assert {word for word, _ in lines} == {
        *("FROM", "ENV", "COPY", "RUN", "WORKDIR", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "CMD"),
    }
    bases = [rest.split()[0] for word, rest in lines if word == "FROM"]
    assert all(re.fullmatch(r"python:3\.\d+-slim-\w+", base) for base in bases)
    assert len(bases) == 2
    assert any("--require-hashes" in rest for word, rest in lines if word == "RUN")
    copied = [rest.split()[0] for word, rest in lines if word == "COPY" and not rest.startswith("--from")]
    assert all((ROOT / name).exists() for name in copied)
    let_in = {line[1:] for line in (FILES / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in == set(copied)
    everything = (FILES / "Dockerfile").read_text()
    assert not re.search(r"(?i)(secret|password|token|_key)\s*=", everything)


@pytest.mark.unit
def test_services_are_closed_in_and_only_loopback_is_published() -> None:
    found = compose()
    services = found["services"]
    ours = {name for name, service in services.items() if service["image"].startswith("holdpoint:")}
    assert ours == {"migrate", "web", "beat", "consumer", *LANES}
    for name in ours | {"valkey"}:
        assert HARDENED.items() <= services[name].items(), name
        assert services[name]["user"].split(":")[0] not in {"0", "root"}
    assert found["networks"]["inside"] == {"internal": True}
    assert all(services[name]["networks"] == ["inside"] for name in ("db", "valkey", "migrate"))
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:8000:8000"]
    assert not [name for name, one in services.items() if ":latest" in one["image"] or one.get("privileged")]
    assert "noeviction" in services["valkey"]["command"]
    assert [name for name, one in services.items() if "owner.env" in one.get("env_file", [])] == ["migrate"]
    assert all({"restart", "networks"} <= set(service) for service in services.values())


@pytest.mark.unit
def test_the_example_environment_is_complete_known_and_refused_as_it_is() -> None:
    text = (FILES / "holdpoint.env.example").read_text()
    given = dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))
    assert set(VARIABLES) <= set(given)
    assert set(given) <= variables_in_tables(ROOT / "docs" / "operations.md")
    for name in ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "HOLDPOINT_METRICS_TOKEN"):
        assert PLACEHOLDER.search(given[name]), name


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    panels = json.loads((FILES / "dashboard.json").read_text())["panels"]
    return [rule["expr"] for rule in rules()] + [
        target["expr"] for panel in panels for target in panel.get("targets", [])
    ]


@pytest.mark.unit
def test_every_alert_has_a_section_that_says_what_to_do() -> None:
    found = anchors(ROOT / "docs" / "deploy.md")
    for rule in rules():
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"page", "ticket"}
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (page, anchor) == ("docs/deploy.md", rule["alert"].lower())
        assert anchor in found, anchor
    # Where Prometheus is installed, its own tool reads them too; it also plays the cases in alerts_test.yaml.
    if promtool := shutil.which("promtool"):
        for verb in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
            done = subprocess.run([promtool, *verb], cwd=FILES, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.django_db
def test_every_metric_in_rules_and_dashboard_is_exported(tmp_path: Path, settings: Any) -> None:
    with running_witness(tmp_path / "w1") as witness:  # one that cosigns has metrics of its own
        settings.LEDGER_WITNESSES = json.dumps([witness.entry])
    text = Client().get("/metrics").content.decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    exported = set(kinds) | {f"{name}_bucket" for name, kind in kinds.items() if kind == "histogram"}
    named = {name for expression in expressions() for name in METRIC.findall(expression)}
    assert len(named) > 15, "the search itself is broken"
    assert named - exported == set()


@pytest.mark.django_db
def test_the_role_script_makes_an_owner_and_a_role_that_cannot_change_the_record() -> None:
    options = dict(settings.DATABASES["default"].get("OPTIONS", {}))
    where = options.get("host") or settings.DATABASES["default"]["HOST"]
    names = {"owner": "script_owner", "app": "script_app", "database": "script_database"}
    given = names | {"owner_password": "Zk3vQ8tR1m", "app_password": "Wp7xN4sJ2c"}

    def psql(*arguments: str) -> str:
        done = subprocess.run(
            [str(binaries() / "psql"), "-X", "-h", where, "-U", "postgres", "-d", "postgres", "-At", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    script = [word for name, value in given.items() for word in ("-v", f"{name}={value}")]
    try:
        for _ in range(2):
            psql(*script, "-f", str(FILES / "roles.sql"))
        rights = "SELECT rolname, rolsuper OR rolcreatedb OR rolcreaterole OR rolbypassrls, rolcanlogin FROM pg_roles"
        assert psql("-c", f"{rights} WHERE rolname LIKE 'script_%' ORDER BY 1") == "script_app|f|t\nscript_owner|f|t"
        assert psql("-c", "SELECT has_database_privilege('script_app', 'script_database', 'CREATE')") == "f"
    finally:
        for statement in ("DATABASE IF EXISTS script_database", "ROLE IF EXISTS script_app, script_owner"):
            psql("-c", f"DROP {statement}")


@pytest.mark.django_db
def test_the_owner_and_a_superuser_are_told_apart_from_the_application() -> None:
    with connection.cursor() as cursor:
        assert "owns the record's tables" in role_fault(cursor)
