"""Opening an attempt or a review is on record, in a stream of its own, before anything is shown."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import Error, connection, transaction
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.sealing.models import ReadAccess
from governance.sealing.services.read_audit import read_recorded
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import InvalidInput
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import asked, contract
from tests.attempts.reviews.support import ask as ask_review
from tests.cast import Cast

PARTS = ["", "/timeline", "/decision", "/explain", "/receipts"]


@pytest.fixture
def opened(cast: Cast) -> UUID:
    contract(cast, adapter="external", effect="idempotent")
    return asked(cast.api("attempts:create"), connector="external", runtime_mode="client_driven")


def rows(**where: Any) -> list[ReadAccess]:
    with every_tenant():
        return list(ReadAccess.objects.filter(**where).order_by("id"))


@pytest.mark.django_db
@pytest.mark.parametrize("part", PARTS)
def test_each_page_of_an_attempt_is_recorded_with_who_and_what_for(cast: Cast, opened: UUID, part: str) -> None:
    reader = cast.session(cast.auditor)
    answer = reader.get(f"/api/v1/attempts/{opened}{part}", headers={"x-purpose": "audit-2026"})
    assert answer.status_code == 200
    (row,) = rows()
    assert (row.subject_kind, row.subject_id, row.purpose, row.door) == ("attempt", opened, "audit-2026", "api")
    assert (row.actor_kind, row.organization_id) == ("person", cast.organization.id)
    assert row.request_id == answer["X-Request-ID"]


@pytest.mark.django_db
def test_people_are_recorded_every_time_and_services_once_an_hour(cast: Cast, opened: UUID) -> None:
    person, service = cast.session(cast.operator), cast.api("attempts:create")
    for _ in range(3):
        assert person.get(f"/api/v1/attempts/{opened}").status_code == 200
        assert service.get(f"/api/v1/attempts/{opened}").status_code == 200
    assert [row.actor_kind for row in rows()].count("person") == 3
    assert [row.actor_kind for row in rows()].count("service") == 1
    assert service.get(f"/api/v1/attempts/{opened}", headers={"x-purpose": "other"}).status_code == 200
    assert [row.purpose for row in rows(actor_kind="service")] == ["", "other"]


@pytest.mark.django_db
def test_after_the_hour_a_service_is_recorded_again(cast: Cast) -> None:
    actor = Actor(ActorKind.SERVICE, uuid4(), frozenset({cast.organization.id}))
    subject, now = uuid4(), timezone.now()
    for minutes in (0, 59, 61, 100):
        read_recorded(
            actor=actor,
            organization_id=cast.organization.id,
            subject_kind="export",
            subject_id=subject,
            purpose="",
            at=now + timedelta(minutes=minutes),
        )
    assert len(rows()) == 2


@pytest.mark.django_db
def test_lists_and_what_nobody_may_see_are_not_recorded(cast: Cast, opened: UUID) -> None:
    assert cast.session(cast.operator).get("/api/v1/attempts").status_code == 200
    assert cast.session(cast.other_operator).get(f"/api/v1/attempts/{opened}").status_code == 404
    assert cast.console(cast.operator).get("/admin/attempts/attempt/").status_code == 200
    assert rows() == []


@pytest.mark.django_db
def test_a_purpose_is_a_code_not_a_sentence(cast: Cast, opened: UUID) -> None:
    answer = cast.session(cast.operator).get(
        f"/api/v1/attempts/{opened}", headers={"x-purpose": "Looking after Jane Doe"}
    )
    assert answer.status_code == 400
    assert b"Jane" not in answer.content
    assert rows() == []
    with pytest.raises(InvalidInput):
        read_recorded(
            actor=Actor(ActorKind.SYSTEM),
            organization_id=cast.organization.id,
            subject_kind="export",
            subject_id=uuid4(),
            purpose="a" * 65,
            at=timezone.now(),
        )


@pytest.mark.django_db
def test_reviews_and_console_pages_are_recorded(cast: Cast, opened: UUID) -> None:
    review = ask_review(cast).id
    assert cast.session(cast.reviewer).get(f"/api/v1/reviews/{review}").status_code == 200
    console = cast.console(cast.operator)
    assert console.get(f"/admin/attempts/review/{review}/change/").status_code == 200
    assert console.get(f"/admin/attempts/attempt/{opened}/change/").status_code == 200
    found = [(row.subject_kind, row.door) for row in rows()]
    assert found == [("review", "api"), ("review", "console"), ("attempt", "console")]


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_recorded_is_not_shown(cast: Cast, opened: UUID) -> None:
    client = cast.session(cast.operator)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE governance_readaccess RENAME TO hidden")
        try:
            answer = client.get(f"/api/v1/attempts/{opened}")
        finally:
            cursor.execute("ALTER TABLE hidden RENAME TO governance_readaccess")
    assert answer.status_code >= 500
    assert b"target_ref" not in answer.content


@pytest.mark.django_db
def test_auditors_read_the_stream_and_others_do_not(cast: Cast, opened: UUID) -> None:
    cast.session(cast.operator).get(f"/api/v1/attempts/{opened}")
    for client in (cast.session(cast.auditor), cast.api("ledger:read")):
        found = client.get(f"/api/v1/read-audit?subject_id={opened}").json()["results"]
        assert [row["subject_id"] for row in found] == [str(opened)]
    assert cast.session(cast.reviewer).get("/api/v1/read-audit").status_code == 403
    assert cast.api("attempts:create").get("/api/v1/read-audit").status_code == 403
    stranger = cast.api("ledger:read", organization=cast.other)
    assert stranger.get("/api/v1/read-audit").json()["results"] == []
    assert cast.console(cast.auditor).get("/admin/governance/readaccess/").status_code == 200
    assert cast.console(cast.reviewer).get("/admin/governance/readaccess/").status_code == 403


@pytest.mark.django_db
def test_the_stream_is_append_only_and_apart_from_the_ledger(cast: Cast, opened: UUID) -> None:
    with every_tenant():
        before = LedgerEntry.objects.count()
    cast.session(cast.operator).get(f"/api/v1/attempts/{opened}")
    with every_tenant():
        assert LedgerEntry.objects.count() == before
    with pytest.raises(Error), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM governance_readaccess")
