"""Whoever wrote to something since its last approval cannot approve it, whichever way they wrote; and whoever started
something cannot end it as the second person."""

from copy import deepcopy
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction

from governance.authorship.errors import NobodyResponsible
from governance.authorship.models import Authorship
from governance.authorship.selectors import authors_of
from governance.authorship.states import WorkKind
from governance.contracts.models import Contract, ContractDocument
from governance.contracts.rules.documents import AREAS, area
from governance.contracts.services.contracts import (
    contract_change,
    contract_create,
    contract_new_version,
    contract_retire,
)
from governance.people.models import User
from governance.policies.services import policy_change, policy_create
from governance.shutdown.services import shutdown_release
from governance.tenancy.models import RoleGroup
from governance.violations.errors import SecondPersonNeeded
from reasoncodes.base.actors import SYSTEM, Actor, ActorKind
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.authority.support import key_of, violation_kinds
from tests.governed import ALLOW, AT, make_contract, make_policy, open_contract
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.definitions.services.create import definition_create

AREA = "throttles_and_misuse"
RATIONALE = {"rationale": "Looked at it"}


def document(limit: int = 7) -> dict[str, Any]:
    changed = deepcopy(area(AREA).default)
    changed["limits"][0]["limit"] = limit
    return changed


def write(client: Any, contract: Contract, content: Any = None, name: str = AREA) -> Any:
    return client.patch(f"/api/v1/contracts/{contract.id}", {"documents": {name: content or document()}}, format="json")


def decide(cast: Cast, user: User, contract: Contract, verdict: str = "approve", name: str = AREA) -> int:
    url = f"/api/v1/contracts/{contract.id}/readiness/{name}/{verdict}"
    return int(cast.session(user).post(url, RATIONALE).status_code)


def owning(cast: Cast, username: str, *roles: str) -> User:
    """A person of every owning group, and with these roles."""
    user = cast.person(username, *roles)
    with every_tenant():
        groups = RoleGroup.objects.filter(organization=cast.organization, role__startswith="owner:")
        user.groups.add(*groups.values_list("group_id", flat=True))
    return user


def authors(contract: Contract, name: str = AREA) -> set[str]:
    with every_tenant():
        row = ContractDocument.objects.get(contract=contract, area=name)
        found = authors_of(kind=WorkKind.DOCUMENT, subject_id=row.id)
        return set(User.objects.filter(id__in=found).values_list("username", flat=True))


def nobody_behind(cast: Cast) -> Actor:
    """A service that no person is responsible for."""
    return Actor(ActorKind.SERVICE, uuid7(), frozenset({cast.organization.id}))


def test_an_operator_cannot_launder_documents_with_a_services_key(cast: Cast) -> None:
    """The attack of the issue: change one value in each document with a key, and then approve them."""
    mallory = owning(cast, "mallory", "operator")
    contract = make_contract(cast)
    key = key_of(cast, mallory)
    for one in AREAS:
        changed = deepcopy(one.default)
        if one.name == AREA:
            changed = document()
        assert write(key, contract, changed, one.name).status_code == 200
    assert write(cast.session(mallory), contract, document(8)).status_code == 200
    assert write(key, contract, document(9)).status_code == 200
    assert decide(cast, mallory, contract) == 403
    assert violation_kinds() == ["own_work_approved"]
    assert decide(cast, cast.owner, contract) == 200


def test_a_service_without_a_responsible_person_writes_nothing(cast: Cast) -> None:
    contract, policy = make_contract(cast), make_policy(cast, publish=False)
    service: dict[str, Any] = {"actor": nobody_behind(cast), "at": AT}
    into = {"organization": cast.organization, "slug": "other"}
    terms = {"title": "Other", "review_owner": "customer_clinician", "policy_slug": "standard"}
    with every_tenant():
        for write_it in (
            lambda: contract_create(**service, **into, **terms),
            lambda: contract_change(**service, contract_id=contract.id, documents={AREA: document()}),
            lambda: policy_create(**service, **into, title="Other", rules=ALLOW),
            lambda: policy_change(**service, policy_id=policy.id, changes={"title": "Other"}),
            lambda: definition_create(**service, **into, document=definition_starter("ai_only")),
        ):
            with pytest.raises(NobodyResponsible):
                write_it()
    assert set(violation_kinds()) == {"second_person_missing"}


def test_a_second_writer_does_not_free_the_first(cast: Cast) -> None:
    first, second = owning(cast, "mallory", "operator"), owning(cast, "mike", "operator")
    contract = make_contract(cast)
    assert write(cast.session(first), contract).status_code == 200
    assert write(cast.session(second), contract, document(8)).status_code == 200
    assert [decide(cast, user, contract) for user in (first, second, cast.owner)] == [403, 403, 200]


def test_going_back_to_the_same_text_frees_nobody(cast: Cast) -> None:
    mallory = owning(cast, "mallory", "operator")
    contract = make_contract(cast)
    assert write(cast.session(mallory), contract).status_code == 200
    assert write(cast.session(cast.operator), contract, area(AREA).default).status_code == 200
    assert authors(contract) == {"alice", "mallory"}
    assert decide(cast, mallory, contract) == 403


def test_saving_without_a_change_makes_nobody_an_author(cast: Cast) -> None:
    mallory = owning(cast, "mallory", "operator")
    contract = make_contract(cast)
    assert write(cast.session(mallory), contract, area(AREA).default).status_code == 200
    assert decide(cast, mallory, contract) == 200


def test_after_an_approval_only_later_writers_count(cast: Cast) -> None:
    mallory = owning(cast, "mallory", "operator")
    contract = make_contract(cast)
    assert write(cast.session(mallory), contract).status_code == 200
    assert decide(cast, cast.owner, contract) == 200
    assert write(cast.session(cast.operator), contract, document(8)).status_code == 200
    assert authors(contract) == {"alice"}
    assert decide(cast, mallory, contract) == 200


def test_a_revoked_approval_brings_no_author_back_in(cast: Cast) -> None:
    mallory = owning(cast, "mallory", "operator")
    contract = make_contract(cast)
    assert write(cast.session(mallory), contract).status_code == 200
    assert decide(cast, cast.owner, contract) == 200
    assert decide(cast, mallory, contract, "revoke") == 200
    assert decide(cast, mallory, contract) == 403


def test_a_new_version_keeps_the_authors_of_what_nobody_approved(cast: Cast) -> None:
    mallory = owning(cast, "mallory", "operator")
    contract = make_contract(cast)
    assert write(cast.session(mallory), contract).status_code == 200
    with every_tenant():
        contract_retire(actor=SYSTEM, at=contract.created_at, contract_id=contract.id, reason_code="superseded")
        new = contract_new_version(actor=SYSTEM, at=contract.created_at, contract_id=contract.id)
    assert decide(cast, mallory, new) == 403


def test_in_a_new_version_unchanged_documents_stay_approved_and_changed_ones_count_anew(cast: Cast) -> None:
    mallory = owning(cast, "mallory", "operator")
    contract = open_contract(cast)
    with every_tenant():
        new = contract_new_version(actor=SYSTEM, at=contract.created_at, contract_id=contract.id)
    assert write(cast.session(mallory), new).status_code == 200
    assert authors(new) == {"mallory"}
    assert decide(cast, mallory, new) == 403
    board = cast.session(mallory).get(f"/api/v1/contracts/{new.id}/readiness").json()["areas"]
    assert {row["status"] for row in board if row["area"] != AREA} == {"approved"}


def test_who_changes_the_terms_is_an_author_of_all_ten_areas(cast: Cast) -> None:
    mallory = owning(cast, "mallory", "operator")
    contract = make_contract(cast)
    answer = cast.session(mallory).patch(f"/api/v1/contracts/{contract.id}", {"risk_tier": "low"}, format="json")
    assert answer.status_code == 200, answer.json()
    assert {decide(cast, mallory, contract, name=one.name) for one in AREAS} == {403}


def test_the_board_shows_all_authors_and_offers_them_no_approval(cast: Cast) -> None:
    mallory = owning(cast, "mallory", "operator")
    contract = make_contract(cast)
    write(cast.session(mallory), contract)
    address = f"/admin/governance/contract/{contract.id}/readiness/{AREA}/"
    html = cast.console(mallory).get(address).content.decode()
    assert "alice, mallory" in html
    assert "Approve this document" not in html
    assert "Approve this document" in cast.console(cast.owner).get(address).content.decode()


def test_the_list_of_authors_is_append_only(cast: Cast) -> None:
    make_contract(cast)
    with every_tenant():
        assert Authorship.objects.count() == len(AREAS)
    for statement in ("UPDATE governance_authorship SET lineage = 9", "DELETE FROM governance_authorship"):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)


# -- second persons ---------------------------------------------------------------------------------------------------
def test_who_engaged_a_shutdown_with_a_key_cannot_release_it_in_their_session(cast: Cast) -> None:
    _ = cast.second_operator
    engaged = key_of(cast, cast.operator).post(
        "/api/v1/shutdowns",
        {"scope": "organization", "reason_code": "operator_shutdown", "note": "Incident 17"},
        format="json",
    )
    assert engaged.status_code == 201, engaged.json()
    url = f"/api/v1/shutdowns/{engaged.json()['id']}/release"
    for client in (cast.session(cast.operator), key_of(cast, cast.operator)):
        assert client.post(url, {}, format="json").status_code == 403
    with every_tenant(), pytest.raises(SecondPersonNeeded):
        shutdown_release(actor=nobody_behind(cast), at=AT, shutdown_id=UUID(engaged.json()["id"]))
    # A key is refused before that: only people release.
    assert violation_kinds() == ["second_person_missing"] * 2
    assert cast.session(cast.second_operator).post(url, {}, format="json").status_code == 200


def test_who_engaged_it_in_their_session_cannot_release_it_with_a_key(cast: Cast) -> None:
    engaged = cast.session(cast.operator).post(
        "/api/v1/shutdowns",
        {"scope": "organization", "reason_code": "operator_shutdown", "note": "Incident 17"},
        format="json",
    )
    url = f"/api/v1/shutdowns/{engaged.json()['id']}/release"
    assert key_of(cast, cast.operator).post(url, {}, format="json").status_code == 403


def test_who_placed_a_hold_or_asked_for_a_deletion_with_a_key_cannot_end_it(cast: Cast) -> None:
    key, mine, second = key_of(cast, cast.operator), cast.session(cast.operator), cast.session(cast.second_operator)
    hold = key.post("/api/v1/legal-holds", {"scope": "context", "target": "ctx-0001", "reason_code": "litigation"})
    asked = key.post("/api/v1/deletions", {"context_ref": "ctx-0002"})
    for url in (f"/api/v1/legal-holds/{hold.json()['id']}/release", f"/api/v1/deletions/{asked.json()['id']}/accept"):
        assert mine.post(url, {"reason_code": "hold_ended"}).status_code == 403
    assert violation_kinds() == ["second_person_missing"] * 2
    release = f"/api/v1/legal-holds/{hold.json()['id']}/release"
    assert second.post(release, {"reason_code": "hold_ended"}).status_code == 200
