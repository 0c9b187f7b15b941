"""`manage.py demo`: one JSON object for programs, the same again the second time, and never in production."""

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from config.demo.refund import DOCUMENT
from config.demo.secrets import DemoSecrets
from config.demo.seed import demo_seed
from config.env import BASE_DIR
from governance.contracts.rules.documents import OWNER_GROUPS
from governance.ledger.models import LedgerEntry
from governance.people.models import ApiKey, User
from reasoncodes.base.tenancy import every_tenant
from tests.governance.support import everything_stored, row_counts
from tests.production import minimal_environment
from tests.worlds import kept_for_the_module
from workflows.definitions.rules.starters.starters import NAMES, definition_starter

KEYS = {"caller", "executor", "reviewer_service", "workflows", "governance", "ledger", "admin", "other_caller"}
PEOPLE = {"operator", "reviewer", "reviewer2", "sa_qa", "auditor", "admin"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDPOINT_HOME", str(tmp_path))
    return tmp_path


@dataclass(frozen=True)
class Seeded:
    facts: dict[str, Any]
    secrets: str
    mode: int


@pytest.fixture(scope="module")
def seeded_once(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Seeded]:
    home = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch, kept_for_the_module(django_db_blocker) as world:
        patch.setenv("HOLDPOINT_HOME", str(home))
        with world:
            facts = demo()
        yield Seeded(facts, (home / "demo.json").read_text(), (home / "demo.json").stat().st_mode)


@pytest.fixture
def seeded(seeded_once: Seeded, db: None, folder: Path) -> Seeded:
    """The demo organization as its first seeding left it, with its file in this test's folder."""
    (folder / "demo.json").write_text(seeded_once.secrets)
    return replace(seeded_once, facts=deepcopy(seeded_once.facts))


def demo() -> dict[str, Any]:
    out = StringIO()
    call_command("demo", "--json", stdout=out)
    return dict(json.loads(out.getvalue()))


def test_it_tells_what_a_black_box_check_needs(seeded: Seeded) -> None:
    facts = seeded.facts
    assert {"base_url", "organization", "other_organization", "users", "keys", "contracts", "definitions"} <= set(facts)
    assert set(facts["organization"]) == set(facts["other_organization"]) == {"id", "slug"}
    assert facts["organization"]["id"] != facts["other_organization"]["id"]
    owners = {"owner_" + group.replace("-", "_") for group in OWNER_GROUPS}
    assert PEOPLE | owners <= set(facts["users"])
    assert all(set(user) == {"username", "password"} for user in facts["users"].values())
    assert set(facts["keys"]) == KEYS
    assert facts["attempt_example"]["action"]["payload_sha256"]
    assert "webhook" not in facts  # nobody named a receiver


def test_its_workflows_are_published_with_open_contracts_and_the_example_fits(seeded: Seeded) -> None:
    facts = seeded.facts
    assert set(facts["definitions"]) == {*NAMES, "refund"}
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {facts['keys']['workflows']}")
    for name, shown in facts["definitions"].items():
        row = api.get(f"/api/v1/workflow-definitions/{shown['id']}").json()
        assert {field: row[field] for field in shown} == shown
        assert (row["status"], row["contract"]["state"], row["contract"]["missing_areas"]) == ("active", "open", [])
        assert row["definition"] == (json.loads(DOCUMENT.read_text()) if name == "refund" else definition_starter(name))
    example = facts["event_example"]
    active = api.get(f"/api/v1/workflow-definitions?product_id={example['product_id']}&status=active").json()
    assert [row["id"] for row in active["results"]] == [facts["definitions"]["ai_with_confidence_escalation"]["id"]]
    for one in (example, facts["run_example"]):
        schema = api.get(f"/api/v1/event-types/{one['event_type']}").json()["schema"]
        assert Draft202012Validator(schema).is_valid(one)


def test_the_logins_and_keys_work(seeded: Seeded) -> None:
    facts = seeded.facts
    for user in facts["users"].values():
        found = User.objects.get(username=user["username"])
        assert found.check_password(user["password"])
        assert found.is_staff
    api = APIClient()
    for name, status in (("workflows", 200), ("admin", 200), ("caller", 403), ("executor", 403)):
        answer = api.get("/api/v1/reason-codes", HTTP_AUTHORIZATION=f"Bearer {facts['keys'][name]}")
        assert answer.status_code == status, name
    url = f"/api/v1/reason-codes?org_id={facts['organization']['id']}"
    assert api.get(url, HTTP_AUTHORIZATION=f"Bearer {facts['keys']['workflows']}").status_code == 200


def test_the_second_time_it_makes_nothing_and_says_the_same(seeded: Seeded, settings: Any) -> None:
    settings.HOLDPOINT_DEMO_WEBHOOK = "http://127.0.0.1:9/hook"
    first, rows = demo(), row_counts()
    assert (first["webhook"]["url"], first["webhook"]["secret"][:6]) == (settings.HOLDPOINT_DEMO_WEBHOOK, "whsec_")
    assert demo()["webhook"] == first["webhook"]
    settings.HOLDPOINT_DEMO_WEBHOOK = ""  # asked beside a stack that has it
    second = demo()
    example, another = first.pop("event_example"), second.pop("event_example")
    asked, again = first.pop("run_example"), second.pop("run_example")
    assert asked["payload"]["business_key"] != again["payload"]["business_key"]
    assert second == first
    assert row_counts() == rows
    fresh = {"event_id", "case_id", "correlation_id", "occurred_at"}
    assert {name for name in example if example[name] != another[name]} == fresh


def test_one_that_waited_for_another_takes_over_what_that_one_made(seeded: Seeded, folder: Path) -> None:
    """`make run` seeds while somebody asks for the demo: the second must not replace the first one's keys."""
    (folder / "demo.json").unlink()
    waited = DemoSecrets()  # read before the other one wrote
    (folder / "demo.json").write_text(seeded.secrets)
    assert demo_seed(at=timezone.now(), secrets=waited)["keys"] == seeded.facts["keys"]


def test_a_lost_file_means_new_secrets_for_the_same_people_and_accounts(seeded: Seeded, folder: Path) -> None:
    first = seeded.facts
    (folder / "demo.json").unlink()
    second = demo()
    assert second["organization"] == first["organization"]
    assert not set(second["keys"].values()) & set(first["keys"].values())
    with every_tenant():
        assert ApiKey.objects.filter(revoked_at=None).count() == len(KEYS)
    answer = APIClient().get("/api/v1/reason-codes", HTTP_AUTHORIZATION=f"Bearer {first['keys']['workflows']}")
    assert answer.status_code == 401


def test_a_revoked_key_is_replaced(seeded: Seeded) -> None:
    first = seeded.facts
    with every_tenant():
        prefix = first["keys"]["workflows"].split("_")[1]
        ApiKey.objects.filter(prefix=prefix).update(revoked_at="2026-01-01T00:00Z")
    second = demo()
    assert {name for name in KEYS if first["keys"][name] != second["keys"][name]} == {"workflows"}


def test_a_second_time_no_password_is_hashed_again(seeded: Seeded) -> None:
    """Seventeen hashes are seconds at every start, and a new hash would sign everybody out."""
    before = dict(User.objects.values_list("username", "password"))
    demo()
    assert dict(User.objects.values_list("username", "password")) == before


def test_secrets_are_in_a_file_of_the_owner_and_not_in_the_database(seeded: Seeded) -> None:
    facts = seeded.facts
    assert stat.S_IMODE(seeded.mode) == 0o600
    stored = everything_stored()
    for secret in [*facts["keys"].values(), *(user["password"] for user in facts["users"].values())]:
        assert secret not in stored


def test_what_it_makes_is_on_the_ledger(seeded: Seeded) -> None:
    with every_tenant():
        actions = set(LedgerEntry.objects.values_list("action", flat=True))
    assert {"organization.created", "person.created", "person.role_given", "api_key.issued"} <= actions


@pytest.mark.parametrize("text", ["", "not json", "[]", '"text"', '{"keys": 3}', '{"passwords": []}'])
def test_a_broken_file_is_a_lost_file(folder: Path, text: str) -> None:
    (folder / "demo.json").write_text(text)
    secrets = DemoSecrets()
    assert secrets.key("caller") is None
    assert secrets.password("operator").startswith("demo-")
    secrets.remember_key("caller", "hp_x")
    secrets.save()
    assert DemoSecrets().key("caller") == "hp_x"


def test_people_read_a_list(seeded: Seeded) -> None:
    out = StringIO()
    call_command("demo", stdout=out)
    assert "operator" in out.getvalue()
    assert "hp_" in out.getvalue()


def test_it_is_refused_where_the_demo_is_not_allowed(db: None, settings: Any) -> None:
    settings.DEMO_ALLOWED = False
    rows = row_counts()
    with pytest.raises(CommandError, match="refused under production settings"):
        call_command("demo")
    assert row_counts() == rows


def test_it_is_refused_under_production_settings(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "manage.py", "demo", "--json"],
        cwd=BASE_DIR,
        env=minimal_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode != 0
    assert found.stdout == ""
    assert "refused under production settings" in found.stderr
    assert "Traceback" not in found.stderr
