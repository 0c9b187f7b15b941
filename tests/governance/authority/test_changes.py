"""One person proposes what widens authority, another one confirms it; every step and every try is on record."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from governance.authority.models import AuthorityChange
from governance.authority.services.acts_people import GAINS
from governance.authority.services.changes import authority_act, authority_lapse_due
from governance.ledger.models import LedgerEntry
from governance.people.models import ApiKey, FoundingEnd, ServiceAccount, User
from governance.people.selectors.people import roles_held
from governance.people.services.people import person_role_take
from governance.violations.models import GovernanceViolation
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

URL = "/api/v1/authority-changes"
TIER = "reviewer:customer_clinician"


@pytest.fixture
def two(cast: Cast) -> Cast:
    """A clinic whose founding has ended: Alice and Amir operate it."""
    _ = cast.operator, cast.second_operator, cast.nobody
    return cast


def propose(cast: Cast, *, by: User | None = None, **body: Any) -> Any:
    given = {"kind": "role.give", "subject": "norman", "details": {"role": TIER}} | body
    return cast.session(by or cast.operator).post(URL, given, format="json")


def confirm(cast: Cast, change_id: str, *, by: User) -> Any:
    return cast.fresh(cast.session(by)).post(f"{URL}/{change_id}/confirm", {}, format="json")


def roles(cast: Cast, user: User) -> list[str]:
    with every_tenant():
        return roles_held(user_id=user.id, organization_id=cast.organization.id)


def actions(change_id: str) -> list[str]:
    with every_tenant():
        return list(LedgerEntry.objects.filter(subject_id=change_id).order_by("id").values_list("action", flat=True))


def violations() -> list[str]:
    with every_tenant():
        return list(GovernanceViolation.objects.values_list("kind", flat=True))


def test_a_proposal_changes_nothing_until_a_second_person_confirms_it(two: Cast) -> None:
    answer = propose(two, note="covers the night shift")
    assert answer.status_code == 201, answer.json()
    body = answer.json()
    assert (body["state"], body["kind"], body["secret"]) == ("proposed", "role.give", None)
    assert roles(two, two.nobody) == []

    done = confirm(two, body["id"], by=two.second_operator)
    assert (done.status_code, done.json()["state"]) == (200, "in_force")
    assert roles(two, two.nobody) == [TIER]
    assert actions(body["id"]) == ["authority.proposed", "authority.confirmed"]


def test_the_proposer_cannot_confirm_and_the_try_is_a_violation(two: Cast) -> None:
    change = propose(two).json()["id"]
    answer = confirm(two, change, by=two.operator)
    assert answer.status_code == 403
    assert answer.json()["type"].endswith("/second-person-needed")
    assert roles(two, two.nobody) == []
    assert violations() == ["second_person_missing"]


def test_who_gains_cannot_confirm(two: Cast) -> None:
    until = (timezone.now() + timedelta(days=7)).date().isoformat()
    change = propose(two, subject="amir", details={"role": TIER, "exception_until": until}).json()["id"]
    answer = confirm(two, change, by=two.second_operator)
    assert (answer.status_code, answer.json()["detail"]) == (403, GAINS)
    assert roles(two, two.second_operator) == ["operator"]


def test_what_a_service_proposes_counts_as_its_responsible_persons(two: Cast) -> None:
    secret = two.key("governance:write", "governance:read")
    with every_tenant():
        account = ServiceAccount.objects.latest("id")
        account.responsible = two.operator
        account.save(update_fields=["responsible"])
    given = {"kind": "role.give", "subject": "norman", "details": {"role": TIER}}
    change = two.with_key(secret).post(URL, given, format="json")
    assert change.status_code == 201, change.json()
    assert change.json()["proposed_through"] == account.slug
    assert confirm(two, change.json()["id"], by=two.operator).status_code == 403
    # A key never confirms.
    assert two.with_key(secret).post(f"{URL}/{change.json()['id']}/confirm", {}, format="json").status_code == 403
    assert confirm(two, change.json()["id"], by=two.second_operator).status_code == 200


def test_an_old_sign_in_is_not_enough_to_confirm(two: Cast) -> None:
    change = propose(two).json()["id"]
    old = two.fresh(two.session(two.second_operator), at=(timezone.now() - timedelta(minutes=11)).timestamp())
    answer = old.post(f"{URL}/{change}/confirm", {}, format="json")
    assert answer.status_code == 403
    assert answer.json()["type"].endswith("/fresh-sign-in-needed")
    assert roles(two, two.nobody) == []


def test_a_proposal_can_be_declined_by_others_and_withdrawn_by_its_proposer(two: Cast) -> None:
    first, second = propose(two).json()["id"], propose(two).json()["id"]
    mine, other = two.session(two.operator), two.session(two.second_operator)
    assert mine.post(f"{URL}/{first}/decline", {}, format="json").status_code == 409
    assert other.post(f"{URL}/{first}/decline", {}, format="json").json()["state"] == "declined"
    assert other.post(f"{URL}/{second}/withdraw", {}, format="json").status_code == 403
    assert mine.post(f"{URL}/{second}/withdraw", {}, format="json").json()["state"] == "withdrawn"
    assert confirm(two, first, by=two.second_operator).status_code == 409
    assert roles(two, two.nobody) == []


def test_after_72_hours_a_proposal_lapses_with_the_deadline_as_its_time(two: Cast) -> None:
    change = propose(two).json()["id"]
    with every_tenant():
        late = timezone.now() + timedelta(hours=72, minutes=5)
        assert authority_lapse_due(at=late) == 1
        assert authority_lapse_due(at=late) == 0
        row = AuthorityChange.objects.get(id=change)
    assert (row.state, row.decided_at) == ("lapsed", row.expires_at)
    assert actions(change) == ["authority.proposed", "authority.lapsed"]


def test_who_confirms_too_late_finds_it_lapsed(two: Cast, time_machine: Any) -> None:
    change = propose(two).json()["id"]
    time_machine.move_to(timezone.now() + timedelta(hours=73))
    assert confirm(two, change, by=two.second_operator).status_code == 409
    assert actions(change) == ["authority.proposed", "authority.lapsed"]


def test_a_proposer_who_lost_the_right_is_proposed_for_no_more(two: Cast) -> None:
    change = propose(two).json()["id"]
    with every_tenant():
        person_role_take(
            actor=SYSTEM, at=timezone.now(), user=two.operator, organization=two.organization, role="operator"
        )
    assert confirm(two, change, by=two.second_operator).status_code == 403
    assert roles(two, two.nobody) == []


@pytest.mark.parametrize("who", ["auditor", "reviewer", "owner", "nobody"])
def test_other_roles_neither_propose_nor_confirm(two: Cast, who: str) -> None:
    change = propose(two).json()["id"]
    assert propose(two, by=getattr(two, who)).status_code == 403
    assert confirm(two, change, by=getattr(two, who)).status_code == 403
    assert roles(two, two.nobody) == []


def test_another_organizations_change_does_not_exist(two: Cast) -> None:
    change = propose(two).json()["id"]
    stranger = two.fresh(two.session(two.other_operator))
    assert stranger.get(f"{URL}/{change}").status_code == 404
    for verb in ("confirm", "decline", "withdraw"):
        assert stranger.post(f"{URL}/{change}/{verb}", {}, format="json").status_code == 404
    assert stranger.get(URL).json()["results"] == []


def test_a_key_is_made_when_proposed_and_works_when_confirmed(two: Cast) -> None:
    two.key("ledger:read")
    with every_tenant():
        account = ServiceAccount.objects.latest("id")
    details = {"scopes": ["governance:read"], "days": 30}
    asked = propose(two, kind="api_key.issue", subject=account.slug, details=details)
    assert asked.status_code == 201, asked.json()
    secret, change = asked.json()["secret"], asked.json()["id"]
    assert two.with_key(secret).get("/api/v1/contracts").status_code == 401
    done = confirm(two, change, by=two.second_operator)
    assert (done.status_code, done.json()["secret"]) == (200, None)
    assert two.with_key(secret).get("/api/v1/contracts").status_code == 200
    shown = two.session(two.operator).get(f"{URL}/{change}").content.decode()
    with every_tenant():
        key = ApiKey.objects.get(id=done.json()["result"]["api_key"])
    assert bytes(key.sha256).hex() not in shown
    assert secret not in shown


def test_a_person_and_their_roles_come_with_one_confirmation(two: Cast) -> None:
    change = propose(two, kind="person.create", subject="nina", details={"roles": ["auditor"]}).json()["id"]
    assert not User.objects.filter(username="nina").exists()
    assert confirm(two, change, by=two.second_operator).status_code == 200
    assert roles(two, User.objects.get(username="nina")) == ["auditor"]


def test_who_would_be_responsible_for_an_account_cannot_confirm_it(two: Cast) -> None:
    change = propose(two, kind="service_account.create", subject="bot", details={"responsible": "amir"}).json()["id"]
    assert confirm(two, change, by=two.second_operator).status_code == 403
    third = two.person("ada", "operator")
    assert confirm(two, change, by=third).status_code == 200
    with every_tenant():
        assert ServiceAccount.objects.get(slug="bot").responsible == two.second_operator


def test_the_founder_acts_alone_and_each_act_says_so(cast: Cast) -> None:
    _ = cast.nobody
    answer = propose(cast)
    assert (answer.status_code, answer.json()["state"], answer.json()["founding"]) == (201, "in_force", True)
    assert roles(cast, cast.nobody) == [TIER]
    assert actions(answer.json()["id"]) == ["authority.founding"]


def test_the_founding_ends_by_itself_and_cannot_begin_again(cast: Cast) -> None:
    _ = cast.nobody
    assert propose(cast, details={"role": "operator"}).json()["founding"] is True
    with every_tenant():
        assert FoundingEnd.objects.filter(organization=cast.organization).exists()
        person_role_take(
            actor=SYSTEM, at=timezone.now(), user=cast.nobody, organization=cast.organization, role="operator"
        )
    # Alice is alone again, and still cannot act alone.
    assert propose(cast, subject="norman").json()["state"] == "proposed"


@pytest.mark.parametrize("change", ['details = \'{"role": "operator"}\'', "founding = true", "kind = 'x'"])
def test_the_database_refuses_to_change_a_proposal(two: Cast, change: str) -> None:
    made = propose(two).json()["id"]
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE governance_authoritychange SET " + change + " WHERE id = %s", [made])  # noqa: S608


def test_the_database_refuses_to_put_a_proposal_in_force_by_its_own_proposer(two: Cast) -> None:
    change = propose(two).json()["id"]
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE governance_authoritychange SET state = 'in_force', decided_by_id = proposed_by_id,"
            " decided_at = now() WHERE id = %s",
            [change],
        )


def test_unknown_kinds_and_fields_are_refused_by_pointer(two: Cast) -> None:
    assert propose(two, kind="root.become").status_code == 400
    wrong = propose(two, details={"role": TIER, "also": 1})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (400, "/details")
    assert propose(two, details={"role": "emperor"}).status_code == 400


def test_installation_wide_acts_belong_to_the_home_organization(two: Cast) -> None:
    assert two.organization.home
    _ = two.other_operator
    assert two.other.home is False


def test_an_act_outside_of_a_request_keeps_the_tenant_scope(two: Cast) -> None:
    with every_tenant():
        made = authority_act(
            actor=two.actor(two.operator, [two.organization]),
            at=timezone.now(),
            organization=two.organization,
            kind="role.give",
            subject="norman",
            details={"role": TIER},
        )
    assert made.applied is None


def test_whoever_confirms_reads_whom_it_is_about(two: Cast) -> None:
    """Before and after differ in the roles only: the name of the person is the same in both, and stood nowhere."""
    asked = propose(two, subject="norman", details={"role": "operator"}).json()["id"]
    console = two.fresh(two.console(two.second_operator))
    for page in ("change/", "act/confirm/"):
        shown = console.get(f"/admin/governance/authoritychange/{asked}/{page}").content.decode()
        assert "Give a role: <strong>norman</strong>" in shown
        assert "This allows more than before." in shown
