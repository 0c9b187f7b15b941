"""Modules over the API: two people register and change them, one disables them; what a bound key may publish."""

from typing import Any
from uuid import uuid4

import pytest
from django.test import override_settings

from governance.people.models import ServiceAccount
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.modules.support import (
    PAYMENTS,
    REFUND,
    URL,
    acts_of,
    bound,
    decide,
    fresh,
    registered,
    violations,
)
from tests.workflows.running import Running
from workflows.modules.models import Module, ModuleVersion

pytestmark = pytest.mark.django_db
WRITE, READ = "governance:write", "orchestrator:read"
HTTP = PAYMENTS | {"transport": "http", "url": "https://payments.example/holdpoint"}


def confirm(cast: Cast, answer: Any) -> Any:
    change = answer.json()["authority_change"]
    assert change["state"] == "proposed"
    client = cast.fresh(cast.session(cast.second_operator))
    return client.post(f"/api/v1/authority-changes/{change['id']}/confirm", {}, format="json")


def test_a_second_person_registers_a_module_and_is_shown_its_secret_once(cast: Cast) -> None:
    assert cast.second_operator
    service = cast.api(WRITE, READ)
    proposed = service.post(URL, HTTP, format="json")
    assert proposed.status_code == 202, proposed.json()
    assert service.get(URL).json()["results"] == []
    own = cast.fresh(cast.session(cast.operator))
    mine = own.post(f"/api/v1/authority-changes/{proposed.json()['authority_change']['id']}/confirm", {}, format="json")
    assert (mine.status_code, mine.json()["type"].rpartition("/")[2]) == (403, "second-person-needed")
    done = confirm(cast, proposed)
    assert done.status_code == 200, done.json()
    assert done.json()["state"] == "in_force"
    assert done.json()["secret"].startswith("whsec_")
    (module,) = service.get(URL).json()["results"]
    assert (module["slug"], module["status"], module["version"], module["transport"]) == (
        "payments",
        "active",
        1,
        "http",
    )
    assert module["operations"]["refund"] == REFUND | {"method": "POST"}
    assert acts_of(module["id"]) == ["module.registered"]
    assert "secret" not in str(service.get(f"{URL}/{module['id']}").json())


def test_the_founder_registers_one_alone_and_gets_the_secret(cast: Cast) -> None:
    made = cast.api(WRITE).post(URL, HTTP, format="json")
    assert made.status_code == 201
    assert made.json()["secret"].startswith("whsec_")
    again = cast.api(WRITE).post(URL, HTTP, format="json")
    assert (again.status_code, again.json()["type"].rpartition("/")[2]) == (409, "already-exists")


@pytest.mark.parametrize(
    "url", ["http://payments.example", "https://127.0.0.1/x", "https://user:pw@a.example", "https://a.example/?k=1"]
)
def test_an_address_that_must_not_be_called_is_refused_by_pointer(cast: Cast, url: str) -> None:
    answer = cast.api(WRITE).post(URL, HTTP | {"url": url}, format="json")
    assert answer.status_code == 400
    assert [one["pointer"] for one in answer.json()["errors"]] == ["/url"]
    assert url not in answer.content.decode()


def test_a_change_is_a_new_version_and_the_old_one_stays(cast: Cast) -> None:
    module = registered(cast, HTTP).module
    service = cast.api(WRITE, READ)
    wanted = {"operations": {"refund": REFUND | {"effect": "idempotent"}}}
    proposed = service.patch(f"{URL}/{module.id}", wanted, format="json")
    assert proposed.status_code == 200 or confirm(cast, proposed).status_code == 200
    shown = service.get(f"{URL}/{module.id}").json()
    assert (shown["version"], shown["operations"]["refund"]["effect"]) == (2, "idempotent")
    versions = service.get(f"{URL}/{module.id}/versions").json()["results"]
    assert [(one["number"], one["operations"]["refund"]["effect"]) for one in versions] == [
        (2, "idempotent"),
        (1, "once"),
    ]
    assert acts_of(module.id) == ["module.registered", "module.changed"]


def test_a_proposal_is_outdated_once_the_module_changed(cast: Cast) -> None:
    assert cast.second_operator
    module = registered(cast, HTTP).module
    service = cast.api(WRITE)
    first = service.patch(f"{URL}/{module.id}", {"url": "https://one.example"}, format="json")
    second = service.patch(f"{URL}/{module.id}", {"url": "https://two.example"}, format="json")
    assert confirm(cast, first).status_code == 200
    late = confirm(cast, second)
    assert (late.status_code, late.json()["type"].rpartition("/")[2]) == (409, "proposal-outdated")


def test_one_person_disables_a_module_at_once_and_two_enable_it(cast: Cast) -> None:
    assert cast.second_operator
    module = registered(cast).module
    service = cast.api(WRITE)
    off = service.post(f"{URL}/{module.id}/disable", {"reason_code": "rehearsal"}, format="json")
    assert (off.status_code, off.json()["status"]) == (200, "disabled")
    assert service.post(f"{URL}/{module.id}/disable", {"reason_code": "rehearsal"}, format="json").status_code == 409
    assert service.patch(f"{URL}/{module.id}", {"publishes": []}, format="json").status_code == 409
    assert confirm(cast, service.post(f"{URL}/{module.id}/enable", format="json")).status_code == 200
    assert fresh(module).active
    assert acts_of(module.id) == ["module.registered", "module.disabled", "module.enabled"]


def test_another_organizations_module_does_not_exist(cast: Cast) -> None:
    module = registered(cast).module
    stranger = cast.api(organization=cast.other)
    assert stranger.get(f"{URL}/{module.id}").status_code == 404
    assert stranger.post(f"{URL}/{module.id}/disable", {"reason_code": "rehearsal"}, format="json").status_code == 404
    assert stranger.get(URL).json()["results"] == []
    assert violations() == ["cross_tenant", "cross_tenant"]


def test_the_secret_is_rotated_once_per_overlap(cast: Cast) -> None:
    module = registered(cast, HTTP).module
    service = cast.api(WRITE)
    first = service.post(f"{URL}/{module.id}/rotate-secret", {}, format="json")
    assert first.json()["secret"].startswith("whsec_")
    assert service.post(f"{URL}/{module.id}/rotate-secret", {}, format="json").status_code == 409


# -- bound keys -------------------------------------------------------------------------------------------------------
AI = {
    "slug": "ai-review",
    "transport": "stream",
    "operations": {},
    "publishes": ["ai_review.completed", "ai_review.failed"],
}


def event(running: Running, name: str, payload: dict[str, Any]) -> dict[str, Any]:
    return running.envelope(name, payload, case_id=uuid4())


FAILED = {"reason_code": "image_quality", "retryable": False}
MISSING = {"granted": True, "missing_types": []}


def test_a_bound_key_publishes_only_what_its_module_declared(cast: Cast) -> None:
    running, secret = Running(cast, "ai_only"), cast.key("orchestrator:write")
    module, client = registered(cast, AI).module, cast.with_key(secret)
    before = client.post("/api/v1/events", event(running, "consent.check.completed", MISSING), format="json")
    assert before.status_code == 202  # a key that is bound to no module keeps working
    account = bound(cast, module, secret)
    good = client.post("/api/v1/events", event(running, "ai_review.failed", FAILED), format="json")
    assert good.status_code == 202
    for name, payload in (
        ("consent.check.completed", MISSING),
        ("case.created", {"patient_id": "pat-1"}),
        ("module.payments.refund.completed", {"result": {}}),
    ):
        refused = client.post("/api/v1/events", event(running, name, payload), format="json")
        assert (refused.status_code, refused.json()["type"].rpartition("/")[2]) == (403, "module-overreach")
    assert violations() == ["module_overreach"] * 3
    assert "service_account.module_bound" in acts_of(account.id)


def test_the_keys_of_a_disabled_module_are_refused(cast: Cast) -> None:
    running, secret = Running(cast, "ai_only"), cast.key("orchestrator:write")
    module, client = registered(cast, AI).module, cast.with_key(secret)
    bound(cast, module, secret)
    cast.api(WRITE).post(f"{URL}/{module.id}/disable", {"reason_code": "rehearsal"}, format="json")
    refused = client.post("/api/v1/events", event(running, "ai_review.failed", FAILED), format="json")
    assert refused.status_code == 403


@override_settings(HOLDPOINT_BOUND_KEYS_ONLY=True)
def test_where_keys_must_be_bound_an_unbound_one_only_begins_runs(cast: Cast) -> None:
    running, client = Running(cast, "ai_only"), cast.api("orchestrator:write")
    begun = client.post("/api/v1/events", event(running, "case.created", {"patient_id": "pat-1"}), format="json")
    assert begun.status_code == 202
    refused = client.post("/api/v1/events", event(running, "ai_review.failed", FAILED), format="json")
    assert refused.status_code == 403


def test_an_account_is_bound_by_one_person_and_released_by_two(cast: Cast) -> None:
    assert cast.second_operator
    module, other = registered(cast).module, registered(cast, AI).module
    service = cast.api(WRITE, READ)
    with every_tenant():
        account = ServiceAccount.objects.filter(organization=cast.organization).order_by("id").first()
    assert account is not None
    said = {"service_account": account.slug}
    assert service.post(f"{URL}/{module.id}/accounts", said, format="json").json()["module"] == "payments"
    assert service.post(f"{URL}/{other.id}/accounts", said, format="json").status_code == 409
    (shown,) = service.get(f"{URL}/{module.id}/accounts").json()["results"]
    assert shown["id"] == str(account.id)
    assert confirm(cast, service.delete(f"{URL}/{module.id}/accounts/{account.id}")).status_code == 200
    with every_tenant():
        account.refresh_from_db()
    assert account.module == ""
    assert acts_of(account.id)[-2:] == ["service_account.module_bound", "service_account.module_released"]


def test_versions_are_never_changed(cast: Cast) -> None:
    module = registered(cast, HTTP).module
    decide(cast, "module.change", "payments", {"publishes": ["shipment.arrived"]})
    with every_tenant():
        assert list(ModuleVersion.objects.filter(module=module).values_list("number", "publishes")) == [
            (1, []),
            (2, ["shipment.arrived"]),
        ]
        assert Module.objects.get(id=module.id).version == 2
