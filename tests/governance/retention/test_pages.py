"""The console's pages: placing, ordering and deciding by forms; who may look and who may act."""

from typing import Any

import pytest
from django.utils import timezone

from governance.retention.models import DeletionRequest, ErasureOrder, ExportRequest, LegalHold
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import browser, page
from tests.governance.retention.support import Clinic, attempt, work

MODELS = ["legalhold", "erasureorder", "exportrequest", "deletionrequest"]


def fields(cast: Cast, **more: Any) -> dict[str, Any]:
    return {"organization": str(cast.organization.id)} | more


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("who", "status"),
    [
        ("operator", 200),
        ("auditor", 200),
        ("administrator", 200),
        ("reviewer", 403),
        ("nobody", 403),
        ("anonymous", 302),
    ],
)
def test_who_may_look(cast: Cast, model: str, who: str, status: int) -> None:
    assert browser(cast, who).get(page(model)).status_code == status


@pytest.mark.parametrize(
    "address", ["legalhold/add/", "exportrequest/add/", "deletionrequest/add/", "erasureorder/purge/"]
)
def test_only_operators_act(cast: Cast, address: str) -> None:
    for who, status in {"operator": 200, "auditor": 403, "reviewer": 403, "nobody": 403}.items():
        assert browser(cast, who).get(f"/admin/governance/{address}").status_code == status, who


def test_a_hold_is_placed_and_released_by_a_second_person(cast: Cast) -> None:
    given = fields(cast, scope="context", target="ctx-0001", reason_code="litigation", authority_ref="", note="")
    client = cast.console(cast.operator)
    placed = client.post(page("legalhold", "add"), given)
    assert placed.status_code == 302, placed.content
    with every_tenant():
        hold = LegalHold.objects.get()
    shown = client.get(placed["Location"]).content.decode()
    assert "ctx-0001" in shown
    release = page("legalhold", hold.id, "act", "release")
    assert client.post(release, {"reason_code": "hold_ended"}).status_code == 403
    assert cast.console(cast.person("bob", "operator")).post(release, {"reason_code": "hold_ended"}).status_code == 302
    with every_tenant():
        assert LegalHold.objects.get().state == "released"
    assert browser(cast, "stranger").get(page("legalhold", hold.id, "change")).status_code == 302


def test_a_purge_is_shown_ordered_and_followed(clinic: Clinic) -> None:
    cast = clinic.cast
    first = clinic.denied()
    client = cast.console(cast.operator)
    purge = page("erasureorder", "purge")
    shown = client.get(purge).content.decode()
    assert "1 attempt" in shown
    assert client.post(purge, fields(cast)).status_code == 200  # no reason: nothing happens
    assert attempt(first).erased_at is None
    ordered = client.post(purge, fields(cast, reason_code="retention_over"))
    assert ordered.status_code == 302
    with every_tenant():
        order = ErasureOrder.objects.get()
    progress = page("erasureorder", order.id, "progress")
    assert client.get(progress).json() == {"total": 1, "done": 0, "refused": 0, "waiting": 1, "finished": False}
    work(order)
    assert client.get(progress).json()["finished"] is True
    body = client.get(ordered["Location"]).content.decode()
    assert str(first) in body
    assert client.get(page("erasureorder")).status_code == 200
    entry = client.get(f"/admin/attempts/attempt/{first}/change/")
    assert entry.status_code == 200
    assert client.post(purge, fields(cast, reason_code="retention_over")).status_code == 400


def test_an_export_is_asked_for(cast: Cast) -> None:
    client = cast.console(cast.operator)
    asked = client.post(
        page("exportrequest", "add"), fields(cast, context_ref="ctx-0001", reason_code="data_subject_request")
    )
    assert asked.status_code == 302
    with every_tenant():
        row = ExportRequest.objects.get()
    assert "ctx-0001" in client.get(asked["Location"]).content.decode()
    assert client.get(page("exportrequest", row.id, "progress")).json()["finished"] is False
    assert client.get(page("exportrequest", row.id, "download")).status_code == 409
    assert browser(cast, "stranger").get(page("exportrequest", row.id, "download")).status_code == 404


def test_a_deletion_is_asked_for_and_decided_by_another(clinic: Clinic) -> None:
    cast = clinic.cast
    clinic.denied()
    client, second = cast.console(cast.operator), cast.console(cast.person("bob", "operator"))
    asked = client.post(page("deletionrequest", "add"), fields(cast, context_ref="ctx-0001"))
    assert asked.status_code == 302
    with every_tenant():
        row = DeletionRequest.objects.get()
    accept = page("deletionrequest", row.id, "act", "accept")
    assert "Nothing blocks this" in second.get(accept).content.decode()
    assert client.post(accept, {"reason_code": "data_subject_request"}).status_code == 403
    assert second.post(accept, {"reason_code": "data_subject_request"}).status_code == 302
    with every_tenant():
        row = DeletionRequest.objects.get()
    assert row.order is not None
    work(row.order)
    body = client.get(page("deletionrequest", row.id, "change")).content.decode()
    assert "reference erased" in body
    assert "ctx-0001" not in body


def test_an_overdue_request_is_marked(cast: Cast, time_machine: Any) -> None:
    cast.console(cast.operator).post(page("deletionrequest", "add"), fields(cast, context_ref="ctx-0001"))
    with every_tenant():
        due = DeletionRequest.objects.get().due_at
    time_machine.move_to(due)
    assert timezone.now() >= due
    assert "overdue" in cast.console(cast.operator).get(page("deletionrequest")).content.decode().lower()


def test_a_person_leaves(cast: Cast) -> None:
    user = cast.person("lena", "operator")
    client = cast.console(cast.operator)
    left = client.post(page("user", user.id, "act", "deactivate"), {"reason_code": "person_left"})
    assert left.status_code == 302
    user.refresh_from_db()
    assert not user.is_active
