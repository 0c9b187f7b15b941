"""`import_definition` and `validate_definition`: what an operator scripts."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from governance.contracts.models import Contract
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import actions
from tests.governance.support import row_counts
from tests.workflows.definition_support import document, product, published, stored
from workflows.definitions.models import WorkflowDefinition


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "definition.json"
    path.write_text(json.dumps(document()))
    return path


def run(*arguments: Any) -> tuple[str, str, str]:
    """What it printed, what it complained about, and why it failed, if it did."""
    out, complaints = StringIO(), StringIO()
    try:
        call_command(*map(str, arguments), stdout=out, stderr=complaints)
    except CommandError as error:
        return out.getvalue(), complaints.getvalue(), str(error)
    return out.getvalue(), complaints.getvalue(), ""


def faulty(file: Path) -> Path:
    changed = document(start_step="consent_gat")
    changed["steps"]["image_check"]["kind"] = "require_image"
    file.write_text(json.dumps(changed))
    return file


def test_a_sound_file_may_be_published_and_validating_stores_nothing(cast: Cast, file: Path) -> None:
    assert cast.organization
    before = row_counts()
    assert run("validate_definition", file) == ("It can be published.\n", "", "")
    assert run("validate_definition", file, "--organization", "clinic")[2] == ""
    assert json.loads(run("validate_definition", file, "--json")[0]) == []
    assert row_counts() == before


def test_every_finding_is_printed_with_its_place_and_the_exit_code_is_1(cast: Cast, file: Path) -> None:
    printed, _, failed = run("validate_definition", faulty(file))
    assert "/start_step  [start_step_exists]" in printed
    assert "/steps/image_check/kind  [kind_exists]" in printed
    assert "Did you mean 'require_images'?" in printed
    assert failed.endswith("it cannot be published.")
    with pytest.raises(CommandError) as refusal:
        call_command("validate_definition", str(file), stdout=StringIO())
    assert refusal.value.returncode == 1
    listed = json.loads(run("validate_definition", file, "--json")[0])
    assert {"rule", "pointer", "message", "suggestion"} == set(listed[0])


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "line 1"), (b'{"a": 1, "a": 2}', "same name twice"), (b"\xff", "not UTF-8"), (None, "Cannot read")],
)
@pytest.mark.parametrize("command", [("validate_definition",), ("import_definition", "--organization", "clinic")])
def test_what_cannot_be_read_is_said_in_words(
    cast: Cast, tmp_path: Path, content: bytes | None, said: str, command: tuple[str, ...]
) -> None:
    assert cast.organization
    path = tmp_path / "odd.json"
    if content is not None:
        path.write_bytes(content)
    before = row_counts()
    assert said in run(*command, path)[2]
    assert row_counts() == before


def test_a_file_is_imported_as_a_draft(cast: Cast, file: Path) -> None:
    of = product(cast)
    where = ("--organization", "clinic", "--product", "dermatology")
    printed, _, failed = run("import_definition", file, *where, "--slug", "triage", "--reason", "Moved here")
    assert failed == ""
    with every_tenant():
        made = WorkflowDefinition.objects.get(slug="triage", is_template=False)
    assert str(made.id) in printed
    assert (made.state, made.product_id, made.definition) == ("draft", of.id, document())
    assert actions(made.id) == ["definition.created"]


def test_a_file_is_imported_and_published_in_the_place_of_the_active_one(cast: Cast, file: Path) -> None:
    first = published(cast)
    printed, _, failed = run("import_definition", file, "--organization", "clinic", "--slug", "triage", "--publish")
    assert failed == ""
    assert "Archived: version 1" in printed
    assert "Contract triage/2: draft" in printed
    assert "waits for privacy: metadata_boundary (pending)" in printed
    assert stored(first).state == "archived"
    with every_tenant():
        assert Contract.objects.get(slug="triage", version=2).state == "draft"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--organization", "nowhere"), "no organization nowhere"),
        (("--organization", "clinic", "--product", "nothing"), "has no product nothing"),
        (("--organization", "clinic", "--publish", "--policy", "nothing"), "expected shape"),
    ],
)
def test_a_name_that_does_not_exist_imports_nothing(cast: Cast, file: Path, arguments: Any, said: str) -> None:
    assert cast.organization
    before = row_counts()
    assert said in run("import_definition", file, *arguments)[2]
    assert row_counts() == before


def test_a_faulty_file_is_imported_only_as_a_draft(cast: Cast, file: Path) -> None:
    assert cast.organization
    before = row_counts()
    where = ("--organization", "clinic", "--slug", "triage")
    _, complaints, failed = run("import_definition", faulty(file), *where, "--publish")
    assert "/start_step  [start_step_exists]" in complaints
    assert "cannot be published" in failed
    assert row_counts() == before
    assert run("import_definition", file, *where)[2] == ""
