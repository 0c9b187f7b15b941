"""A shutdown that nobody is left to release: two owners of different groups end it, and both stand on the ledger."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from governance.contracts.rules.documents import OWNER_GROUPS
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from governance.shutdown import services
from governance.shutdown.models import BreakGlass, Shutdown
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

ROLES = [f"owner:{group}" for group in sorted(OWNER_GROUPS)[:2]]


@pytest.fixture
def engaged(cast: Cast) -> Shutdown:
    """By the only administrator of the installation."""
    return engage(cast)


def engage(cast: Cast, **values: Any) -> Shutdown:
    given = {"scope": ShutdownScope.GLOBAL, "organization_id": None, "installation": True} | values
    actor = cast.actor(cast.administrator, [cast.organization])
    with every_tenant():
        return shutdown_engage(
            actor=actor, at=timezone.now(), reason_code="operator_shutdown", note="Incident 17", **given
        )


def owner(cast: Cast, name: str, *which: int) -> User:
    return cast.person(name, *(ROLES[one] for one in which))


def press(cast: Cast, person: User, shutdown: Shutdown, **body: str) -> Any:
    return cast.session(person).post(f"/api/v1/shutdowns/{shutdown.id}/break-glass", body, format="json")


def state(shutdown: Shutdown) -> str:
    with every_tenant():
        return str(Shutdown.objects.get(id=shutdown.id).state)


def actions() -> list[str]:
    with every_tenant():
        return list(
            LedgerEntry.objects.filter(action__startswith="shutdown.").order_by("id").values_list("action", flat=True)
        )


def test_two_owners_of_different_groups_end_it(cast: Cast, engaged: Shutdown) -> None:
    first, second = owner(cast, "ines", 0), owner(cast, "ulla", 1)
    answer = press(cast, first, engaged, note="Incident 17 is over")
    assert (answer.status_code, answer.json()["state"]) == (200, "engaged")
    assert press(cast, first, engaged).json()["state"] == "engaged"  # the same person twice is one
    answer = press(cast, second, engaged)
    assert (answer.status_code, answer.json()["state"]) == (200, "released")
    assert actions() == [
        "shutdown.engaged",
        "shutdown.break_glass_asked",
        "shutdown.break_glass_asked",
        "shutdown.break_glass_released",
    ]
    with every_tenant():
        entry = LedgerEntry.objects.get(action="shutdown.break_glass_released")
        assert BreakGlass.objects.filter(id=entry.payload["first"]).exists()
    assert press(cast, second, engaged).status_code == 409


def test_two_owners_of_one_group_are_not_enough(cast: Cast, engaged: Shutdown) -> None:
    for name in ("ines", "ulla"):
        assert press(cast, owner(cast, name, 0), engaged).json()["state"] == "engaged"
    assert press(cast, owner(cast, "olaf", 0, 1), engaged).json()["state"] == "released"


def test_a_word_counts_for_a_day(cast: Cast, engaged: Shutdown, monkeypatch: pytest.MonkeyPatch) -> None:
    press(cast, owner(cast, "ines", 0), engaged)
    monkeypatch.setattr(services, "BREAK_GLASS_LASTS", timedelta(0))
    assert press(cast, owner(cast, "ulla", 1), engaged).json()["state"] == "engaged"


def test_it_is_closed_while_anybody_else_can_release_it(cast: Cast, engaged: Shutdown) -> None:
    other = cast.person("rosa")
    User.objects.filter(id=other.id).update(is_superuser=True)
    answer = press(cast, owner(cast, "ines", 0), engaged)
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (403, "break-glass-closed")
    with every_tenant():
        assert GovernanceViolation.objects.filter(kind="second_person_missing").count() == 1
    User.objects.filter(id=other.id).update(is_active=False)
    assert press(cast, owner(cast, "ines", 0), engaged).status_code == 200


def test_one_organization_has_operators_and_owners_of_its_own(cast: Cast) -> None:
    shutdown = engage(cast, scope=ShutdownScope.ORGANIZATION, organization_id=cast.organization.id)
    operator = cast.operator
    assert press(cast, owner(cast, "ines", 0), shutdown).status_code == 403
    User.objects.filter(id=operator.id).update(is_active=False)
    stranger = cast.person("sven", ROLES[1], organization=cast.other)
    assert press(cast, stranger, shutdown).status_code == 404
    assert press(cast, owner(cast, "ines", 0), shutdown).status_code == 200
    assert press(cast, owner(cast, "ulla", 1), shutdown).json()["state"] == "released"


def test_others_cannot_break_the_glass(cast: Cast, engaged: Shutdown) -> None:
    for person in (cast.reviewer, cast.auditor, cast.nobody):
        assert press(cast, person, engaged).status_code == 403
    assert cast.api().post(f"/api/v1/shutdowns/{engaged.id}/break-glass", {}, format="json").status_code == 403
    # Also with an owner's role, which nobody gives an administrator any more: they engaged it.
    User.objects.filter(id=cast.administrator.id).update(is_superuser=False)
    cast.person(cast.administrator.username, *ROLES)
    User.objects.filter(id=cast.administrator.id).update(is_superuser=True)
    answer = press(cast, cast.administrator, engaged)
    assert answer.json()["type"].endswith("/second-person-needed")
    assert state(engaged) == "engaged"


def test_a_drill_needs_no_glass(cast: Cast) -> None:
    assert press(cast, owner(cast, "ines", 0), engage(cast, drill=True)).status_code == 409


def test_the_console_offers_it_to_owners(cast: Cast, engaged: Shutdown) -> None:
    first, second = (owner(cast, name, which) for which, name in enumerate(("ines", "ulla")))
    page = f"/admin/governance/shutdown/{engaged.id}/change/"
    act = f"/admin/governance/shutdown/{engaged.id}/act/break-glass/"
    assert "Break the glass" in cast.console(first).get(page).content.decode()
    assert "Break the glass" not in cast.console(cast.auditor).get(page).content.decode()
    assert cast.console(cast.auditor).post(act).status_code == 403
    assert cast.console(first).get(act).status_code == 200
    assert state(engaged) == "engaged"
    for person, after in ((first, "engaged"), (second, "released")):
        assert cast.console(person).post(act, {"note": "Incident 17 is over"}).status_code == 302
        assert state(engaged) == after
