"""Every route × everybody equals docs/permissions.md, and somebody else's id is not found anywhere.

`make permissions` writes the table anew; what it changes is for a person to agree to.
"""

import copy
import os
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from config.env import BASE_DIR
from governance.ledger.models import LedgerEntry
from governance.people.rules.roles import ApiScope
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.contract import permissions as table
from tests.contract.permissions import (
    ANONYMOUS,
    NEVER,
    NO_ROLE,
    REFUSED,
    STRANGER,
    STRANGERS_KEY,
    UNSEEN,
    YES,
    Row,
    Trial,
)
from tests.contract.world import World
from tests.governance.support import row_counts

FILE = Path(BASE_DIR) / "docs" / "permissions.md"
WRITE = bool(os.environ.get("WRITE_PERMISSIONS"))
# These change nothing, so nothing is rolled back behind them, and the database is counted before and after.
HARMLESS = {ANONYMOUS, NO_ROLE, "auditor"}
# What everybody shares: the program's own vocabulary, templates and event types, and the one tree of the ledger.
SHARED = {"GET /api/v1/workflow-templates/{template_id}"} | {
    f"GET /admin/governance/{model}/{{object_id}}/{page}/"
    for model in ("regionprofile", "ledgerverification")
    for page in ("change", "history", "progress")
}

API_ROLES = {ANONYMOUS, NO_ROLE, *table.MEMBERS, table.ADMINISTRATOR, STRANGER}
CONSOLE_ROLES = API_ROLES - {"sa_qa", "owner_trust_operations"}
Cells = dict[str, dict[str, str]]


def read_table(section: str) -> dict[str, str]:
    """The lines below a heading, by the route they are about."""
    text = FILE.read_text().split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return {one.split("`")[1]: one for one in text.splitlines() if one.startswith("| `")}


def write_table(section: str, lines: list[str]) -> None:
    before, _, rest = FILE.read_text().partition(f"\n## {section}\n")
    words = [one for one in rest.split("\n## ", 1)[0].splitlines() if not one.startswith("| `")]
    after = rest.partition("\n## ")
    text = "\n".join([*words[: len(words) - (words[-1] == "")], *lines, ""])
    FILE.write_text(f"{before}\n## {section}\n{text}" + (f"\n## {after[2]}" if after[1] else ""))


def compare(section: str, rows: list[Row], cells: Cells) -> None:
    """Every route has its line and every line its route; of those roles that were tried, every cell is the table's."""
    if WRITE:
        write_table(section, [table.line(row.name, cells[row.name]) for row in rows])
    known, names = read_table(section), [row.name for row in rows]
    differing = [
        f"{name}: {role} is told {said}, the table says {table.cells_of(known[name], list(by_role))[role]}"
        for name, by_role in cells.items()
        for role, said in by_role.items()
        if name in known and table.cells_of(known[name], list(by_role))[role] != said
    ]
    differing += [f"{name}: has no line" for name in names if name not in known]
    differing += [f"{name}: is in the table and nowhere else" for name in known if name not in names]
    assert not differing, "\n".join(["If that is meant: `make permissions`, and read the diff.", *differing])


def transposed(columns: dict[str, dict[str, str]]) -> Cells:
    """By row; a column may have some of the rows only."""
    cells: Cells = {}
    for role, column in columns.items():
        for row, said in column.items():
            cells.setdefault(row, {})[role] = said
    return cells


def quiet_counts() -> dict[str, int]:
    """Without what is written on purpose: violations and downloads (with their entries), the read audit, references,
    sessions, a person's own codes for linking a chat, and what binds these rows."""
    loud = ("violation", "readaccess", "personreference", "session", "chatlinkcode", "boundrows")
    with every_tenant():
        named = ["violation.recorded", "export.downloaded", "record.rows_changed"]
        said = LedgerEntry.objects.filter(action__in=named).count()
    counts = {name: count for name, count in row_counts().items() if not any(word in name for word in loud)}
    return counts | {"governance_ledgerentry": counts["governance_ledgerentry"] - said}


@pytest.fixture(scope="module")
def api_trial(world: World) -> Trial:
    document: Any = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return Trial(world, table.api_rows(document))


def api_columns(world: World, trial: Trial, names: set[str]) -> Cells:
    columns: dict[str, dict[str, str]] = {}
    people = {name: user for name, user in table.people(world).items() if name in names}
    before = quiet_counts()
    for name, user in sorted(people.items(), key=lambda one: one[0] not in HARMLESS):
        client = APIClient(raise_request_exception=False)
        if user is not None:
            client.force_login(user)
            Cast.fresh(client)  # who confirms a change of authority has just proved who they are
        harmless = name in HARMLESS
        columns[name] = trial.column(client, principal=None if harmless else user, kept=harmless)
        if harmless:
            assert quiet_counts() == before, f"{name} may change nothing, and has"
    for name, secret in table.keys(world).items():
        columns[name] = trial.column(Cast.with_key(secret), principal=table.service(secret))
    return transposed({name: columns[name] for name in [*people, *map(str, ApiScope), STRANGERS_KEY]})


def console_columns(world: World, trials: dict[str, Trial]) -> Cells:
    """What everybody in `trials` is told there. Whoever may change nothing is not taken back, and has not."""
    blank: list[Any] = copy.deepcopy(settings.TEMPLATES)
    blank[0] |= {"APP_DIRS": False}
    blank[0]["OPTIONS"]["loaders"] = ["tests.contract.permissions.BlankLoader"]
    columns, people, before = {}, table.people(world), quiet_counts()
    with override_settings(TEMPLATES=blank):
        for name in sorted(trials, key=lambda one: one not in HARMLESS):
            client, user = Client(raise_request_exception=False), people[name]
            if user is not None:
                client.force_login(user)
            columns[name] = trials[name].column(client, kept=name in HARMLESS)
            if name in HARMLESS:
                assert quiet_counts() == before, f"{name} may change nothing, and has"
    return transposed({name: columns[name] for name in people if name in columns})


@pytest.fixture(scope="module")
def api_cells(world: World, api_trial: Trial) -> Cells:
    return api_columns(world, api_trial, API_ROLES if WRITE else API_ROLES - table.LIKE_OTHERS)


def test_every_route_of_the_api_is_open_to_whom_the_table_says(api_trial: Trial, api_cells: Cells) -> None:
    compare("The API", [row for row, *_ in api_trial.rows], api_cells)


def unseen(rows: list[Row], cells: Cells, strangers: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Where somebody of another organization is told anything but that there is no such thing (or that nobody of their
    kind may go there, whosever it is)."""
    return [
        (row.name, who, cells[row.name][who])
        for row in rows
        for who in strangers
        if row.has_id and row.name not in SHARED and cells[row.name][who] not in {UNSEEN, REFUSED, "405"}
    ]


def test_an_id_of_another_organization_is_not_found_on_any_route(api_trial: Trial, api_cells: Cells) -> None:
    rows = [row for row, *_ in api_trial.rows]
    assert unseen(rows, api_cells, (STRANGER, STRANGERS_KEY)) == []
    # ... and it is there: who may go there at all finds it. 403 is said only where our own are refused alike.
    for row in rows:
        cells = api_cells[row.name]
        if row.has_id and row.name not in SHARED:
            there = {YES, NEVER} & set(cells.values())
            assert there, f"{row.name}: nobody gets there, so the test shows nothing"
            assert UNSEEN in {cells[STRANGER], cells[STRANGERS_KEY]}, row.name


def test_the_id_of_another_organization_as_a_parameter_is_not_found_either(world: World, api_trial: Trial) -> None:
    scopes = [scope for scope in ApiScope if scope != ApiScope.ORCHESTRATOR_ADMIN]  # which may name any
    with every_tenant():
        ours, other = (Organization.objects.get(slug=slug) for slug in ("demo", "other"))
        key = Cast().api(*scopes, organization=ours, responsible=world.everybody)
    for client in (key, world.people):
        for index, (row, *_) in enumerate(api_trial.rows):
            if row.operation == "attempts_create":  # its organization is the key's: it has no such parameter
                continue
            answer = api_trial.ask(client, index, query=f"?org_id={other.id}")
            assert answer.status_code in {403, 404}, (row.name, answer.status_code)


def test_every_page_has_its_line_and_nobody_else_sees_a_row_or_changes_one(world: World) -> None:
    """Those who may change nothing everywhere, a stranger at every row, a reviewer at every button; `make soak` tries
    everybody everywhere."""
    rows = table.console_rows()
    about_rows = [row for row in rows if row.has_id]
    buttons = [row for row in about_rows if row.method == "POST"]
    some = {**dict.fromkeys(HARMLESS, rows), STRANGER: about_rows, "reviewer": buttons}
    tried = dict.fromkeys(CONSOLE_ROLES, rows) if WRITE else some
    cells = console_columns(world, {name: Trial(world, these) for name, these in tried.items()})
    compare("The consoles", rows, cells)
    assert unseen(about_rows, cells, (STRANGER,)) == []


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_everybody_everywhere_is_told_what_the_table_says(world: World, api_trial: Trial) -> None:
    rows = table.console_rows()
    everywhere = Trial(world, rows)
    compare("The consoles", rows, console_columns(world, dict.fromkeys(CONSOLE_ROLES, everywhere)))
    compare("The API", [row for row, *_ in api_trial.rows], api_columns(world, api_trial, API_ROLES))
