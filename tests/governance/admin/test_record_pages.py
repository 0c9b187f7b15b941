"""Decisions in words, re-evaluation, violations, regional profiles, and the front page."""

import pytest
from django.db import connection
from django.utils import timezone

from governance.regions.models import RegionProfile
from governance.regions.services import region_profiles_adopt
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import browser, make_decisions, page
from tests.governance.support import row_counts
from tests.governed import DENY, make_contract, open_contract


def test_a_decision_shows_every_check_in_order_and_in_words(cast: Cast) -> None:
    (decision,) = make_decisions(cast, open_contract(cast, rules=DENY))
    answer = cast.console(cast.auditor).get(page("enforcementdecision", decision.id, "change"))
    names = [result.evaluator for result, _ in answer.context["results"]]
    assert names[0] == "contract_open"
    assert names[-1] == "policy"
    html = answer.content.decode()
    assert "A rule of the policy denies this action." in html
    assert decision.request_sha256 in html
    assert decision.environment_sha256 in html


@pytest.mark.parametrize("who", ["operator", "auditor", "administrator"])
def test_re_evaluating_agrees_and_writes_nothing(cast: Cast, who: str) -> None:
    (decision,) = make_decisions(cast, open_contract(cast))
    client = browser(cast, who)
    client.get("/admin/")
    before = row_counts()
    answer = client.post(page("enforcementdecision", decision.id, "act", "re-evaluate"), follow=True)
    assert "Same result: the stored request" in answer.content.decode()
    assert {name: count for name, count in row_counts().items() if name != "django_session"} == {
        name: count for name, count in before.items() if name != "django_session"
    }


@pytest.mark.tampers
def test_re_evaluating_tells_where_an_altered_row_differs(cast: Cast) -> None:
    (decision,) = make_decisions(cast, open_contract(cast))
    with connection.cursor() as cursor:  # as somebody with the owner's rights on the database could
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE governance_enforcementdecision DISABLE TRIGGER append_only_rows")
        cursor.execute("UPDATE governance_enforcementdecision SET rule_id = 'forged'")
        cursor.execute("ALTER TABLE governance_enforcementdecision ENABLE ALWAYS TRIGGER append_only_rows")
    answer = cast.console(cast.auditor).post(
        page("enforcementdecision", decision.id, "act", "re-evaluate"), follow=True
    )
    assert "Differs in: rule_id" in answer.content.decode()


@pytest.mark.parametrize("who", ["owner", "reviewer", "stranger", "nobody", "anonymous"])
def test_re_evaluating_is_for_those_who_read_the_record(cast: Cast, who: str) -> None:
    (decision,) = make_decisions(cast, open_contract(cast))
    answer = browser(cast, who).post(page("enforcementdecision", decision.id, "act", "re-evaluate"))
    assert answer.status_code in {302, 403, 404}
    assert answer.status_code != 302 or "/login/" in answer["Location"]


def test_decisions_filter_by_verdict(cast: Cast) -> None:
    make_decisions(cast, open_contract(cast), count=2)
    client = cast.console(cast.operator)
    assert client.get(page("enforcementdecision") + "?verdict=allow").context["cl"].result_count == 2
    assert client.get(page("enforcementdecision") + "?verdict=deny").context["cl"].result_count == 0


def test_a_violation_names_the_rule_and_who_tried(cast: Cast) -> None:
    contract = make_contract(cast)
    said = {"verdict": "approve", "rationale": "fine"}
    cast.console(cast.reviewer).post(page("contract", contract.id, "readiness", "metadata_boundary"), said)
    answer = cast.console(cast.auditor).get(page("governanceviolation"))
    (violation,) = answer.context["cl"].result_list
    assert violation.kind == "unauthorized_decision"
    assert browser(cast, "stranger").get(page("governanceviolation")).context["cl"].result_count == 0
    html = cast.console(cast.auditor).get(page("governanceviolation", violation.id, "change")).content.decode()
    assert "rita" in html
    assert "Only a member of the group that owns this area" in html


def test_regional_profiles_carry_their_disclaimer(cast: Cast) -> None:
    with every_tenant():
        region_profiles_adopt(at=timezone.now())
        profile = RegionProfile.objects.first()
    assert profile is not None
    client = cast.console(cast.reviewer)
    for address in (page("regionprofile"), page("regionprofile", profile.id, "change")):
        assert profile.disclaimer[:40] in client.get(address).context["disclaimer"]
        assert "Please note:" in client.get(address).content.decode()


# -- the front page ---------------------------------------------------------------------------------------------------
def test_the_empty_front_page_says_what_to_do_next(cast: Cast) -> None:
    html = cast.console(cast.operator).get("/admin/").content.decode()
    assert page("contract", "add") in html
    assert page("shutdown", "add") in html
    assert "/api/docs/" in html


def test_whoever_cannot_act_is_not_sent_to_pages_they_cannot_open(cast: Cast) -> None:
    for who in ("auditor", "owner", "reviewer"):
        assert "/add/" not in browser(cast, who).get("/admin/").content.decode(), who
    assert "Ask an operator" in browser(cast, "nobody").get("/admin/").content.decode()


def test_the_front_page_counts_what_is_ones_own(cast: Cast) -> None:
    make_decisions(cast, open_contract(cast), count=2)
    make_contract(cast, slug="waiting")
    context = browser(cast, "owner").get("/admin/").context
    assert context["contracts"] == {"draft": 1, "open": 1, "suspended": 0, "retired": 0}
    assert context["decisions"] == {"allow": 2, "needs_approval": 0, "deny": 0}
    assert [(item.contract.slug, item.row.area) for item in context["waiting"]] == [("waiting", "metadata_boundary")]
    stranger = browser(cast, "stranger").get("/admin/").context
    assert stranger["contract_total"] == stranger["decision_total"] == 0


def test_the_side_bar_hides_what_one_may_not_see(cast: Cast) -> None:
    html = cast.console(cast.reviewer).get("/admin/").content.decode()
    assert page("contract") in html
    assert page("governanceviolation") not in html
    assert "/admin/django_celery_beat/" not in html
