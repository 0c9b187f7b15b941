"""pytest plugin: at the end of every test that used the database, before its rollback, each recorded decision is
evaluated again from what is stored with it, and each workflow run is folded again from its log. Both must come out the
same. A test that alters the record on purpose says `@pytest.mark.tampers`."""

from collections.abc import Generator

import pytest
from django.db import connection


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "tampers: alters recorded decisions on purpose; they are not replayed")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What the process remembers of the database must not outlive it: each test has an empty one."""
    forget_the_database()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    outcome = yield
    if item.get_closest_marker("tampers") is None and may_ask_the_database():
        differing = replay_decisions() + replay_instances()
        if differing:
            pytest.fail("replayed differently: " + "; ".join(differing), pytrace=False)
    return outcome


def forget_the_database() -> None:
    from governance.enforcement import services as decision
    from governance.enforcement import services as snapshot
    from governance.enforcement.models import snapshot_load

    snapshot_load.cache_clear()
    decision._region.cache_clear()
    snapshot._known_here.clear()


def may_ask_the_database() -> bool:
    """pytest-django refuses it to tests that did not ask; a transaction that failed answers nothing any more."""
    try:
        connection.ensure_connection()
    except RuntimeError:
        return False
    return not connection.needs_rollback


def replay_decisions() -> list[str]:
    """Every decision that the test recorded, read back with its snapshots."""
    from governance.enforcement.models import EnforcementDecision, snapshot_load
    from governance.enforcement.selectors import decisions_newest_first
    from governance.enforcement.services import decision_replay
    from reasoncodes.base.tenancy import every_tenant

    with every_tenant():
        if not EnforcementDecision.objects.exists():
            return []
        snapshot_load.cache_clear()
        replays = ((row.id, decision_replay(row=row)) for row in decisions_newest_first())
        return [f"decision {id_}: {', '.join(replay.differences)}" for id_, replay in replays if not replay.agrees]


def replay_instances() -> list[str]:
    """Every run that the test began, however far it came."""
    from reasoncodes.base.tenancy import every_tenant
    from workflows.runs.models import WorkflowInstance
    from workflows.runs.services.replay import instance_replay

    with every_tenant():
        replays = [instance_replay(instance=row) for row in WorkflowInstance.objects.all()]
        return [f"run {one.instance.id}: {', '.join(one.differences)}" for one in replays if one.differences]
