"""Revoking, suspending and shutting down hold for the next request after the commit, in another process too."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.other_process import OtherProcess
from tests.governance.decide.support import INTAKE, RATIONALE
from tests.governed import DENY, make_policy, open_contract

pytestmark = pytest.mark.django_db(transaction=True)
NUMBERS = count(1)
SHUTDOWN = {"reason_code": "operator_shutdown", "note": "Incident 17"}


@pytest.fixture
def elsewhere(transactional_db: None, cast: Cast) -> Iterator[OtherProcess]:
    process = OtherProcess(secret=cast.key("attempts:create"))
    yield process
    process.stop()


def ask(elsewhere: OtherProcess) -> tuple[int, str | None]:
    """Status and reason code of one more request there."""
    number = next(NUMBERS)
    body = {
        "patient_context_ref": f"ctx-{number}",
        "runtime_mode": "shadow",
        "action": {
            "connector": "external",
            "operation": "case.close",
            "target_ref": "case-0001",
            "risk_tier": "low",
            "payload_ref": "payload-0001",
            "payload_sha256": "ab" * 32,
        },
    }
    status, answer = elsewhere.ask(INTAKE, body, key=f"key-{number:08}")
    return status, answer.get("reason_code")


def test_revoking_one_area_closes_intake_there(cast: Cast, elsewhere: OtherProcess) -> None:
    contract = open_contract(cast)
    assert ask(elsewhere) == (201, None)
    url = f"/api/v1/contracts/{contract.id}"
    owner = cast.session(cast.person("owner-privacy", "owner:privacy"))
    assert owner.post(f"{url}/readiness/metadata_boundary/revoke", RATIONALE).status_code == 200
    assert ask(elsewhere) == (403, "attempt_creation_disabled")
    assert owner.post(f"{url}/readiness/metadata_boundary/approve", RATIONALE).status_code == 200
    assert ask(elsewhere) == (403, "attempt_creation_disabled")
    assert cast.session(cast.operator).post(f"{url}/open").status_code == 200
    assert ask(elsewhere) == (201, None)


def test_suspending_and_reopening_hold_there(cast: Cast, elsewhere: OtherProcess) -> None:
    url = f"/api/v1/contracts/{open_contract(cast).id}"
    operator = cast.session(cast.operator)
    assert ask(elsewhere)[0] == 201
    operator.post(f"{url}/suspend", {"reason_code": "planned_maintenance"})
    assert ask(elsewhere) == (403, "attempt_creation_disabled")
    operator.post(f"{url}/open")
    assert ask(elsewhere)[0] == 201


@pytest.mark.parametrize(
    ("scope", "target"), [("contract", "close-case"), ("contract", "close-case/1"), ("connector", "external")]
)
def test_a_shutdown_holds_there_until_a_second_person_releases_it(
    cast: Cast, elsewhere: OtherProcess, scope: str, target: str
) -> None:
    open_contract(cast)
    assert ask(elsewhere)[0] == 201
    operator, second = cast.session(cast.operator), cast.session(cast.person("bob", "operator"))
    engaged: Any = operator.post("/api/v1/shutdowns", SHUTDOWN | {"scope": scope, "target": target})
    assert engaged.status_code == 201, engaged.content
    assert ask(elsewhere) == (403, "shutdown_engaged")
    released = second.post(f"/api/v1/shutdowns/{engaged.json()['id']}/release", {"note": "Over"})
    assert released.status_code == 200, released.content
    assert ask(elsewhere)[0] == 201


def test_a_policy_published_here_decides_there(cast: Cast, elsewhere: OtherProcess) -> None:
    open_contract(cast)
    assert ask(elsewhere)[0] == 201
    with every_tenant():
        make_policy(cast, rules=DENY)
    assert ask(elsewhere) == (403, "policy_denied")
