"""Several people at once, on real connections.

Versions, publications and histories were each seen to fail with the locks taken out; that one draft is published once,
and not changed afterwards, the database holds as well.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from governance.contracts.models import Contract
from governance.ledger.models import LedgerEntry
from governance.policies.models import Policy
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.support import in_parallel
from tests.governed import approve
from tests.workflows.definition_support import URL, document, draft, product, publish, published, stored, template
from workflows.definitions.models import WorkflowDefinition, WorkflowDefinitionRevision
from workflows.definitions.selectors import document_at

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 3


def answers(*posts: tuple[Any, str, str, Any] | Callable[[], int]) -> list[int]:
    """The statuses of these requests, sent at the same time."""

    def work(client: Any, method: str, url: str, body: Any) -> Callable[[], int]:
        return lambda: int(getattr(client, method)(url, body).status_code)

    return in_parallel(*[post if callable(post) else work(*post) for post in posts])


def publishing(cast: Cast, row: WorkflowDefinition) -> Callable[[], int]:
    """The service that a confirmed proposal calls; its locks are what is tried here."""

    def work() -> int:
        try:
            publish(cast, row)
        except DomainError as refusal:
            return refusal.status
        return 200

    return work


@pytest.fixture
def people(transactional_db: None, cast: Cast) -> list[Any]:
    return [cast.session(cast.person(f"alice-{number}", "operator")) for number in range(4)]


def test_drafts_made_at_once_get_versions_of_their_own(cast: Cast, people: list[Any]) -> None:
    body = {"slug": "triage", "definition": document()}
    for number in range(ROUNDS):
        clone = f"{URL}/{template().id}/clone"
        posts = [(people[0], "post", URL, body), (people[1], "post", URL, body)]
        posts += [(one, "post", clone, {"slug": "triage"}) for one in people[2:]]
        assert answers(*posts) == [201] * 4
        with every_tenant():
            versions = sorted(WorkflowDefinition.objects.filter(slug="triage").values_list("version", flat=True))
        assert versions == list(range(1, 4 * (number + 1) + 1))


def test_of_several_drafts_published_at_once_one_is_active_in_the_end(cast: Cast, people: list[Any]) -> None:
    for number in range(ROUNDS):
        of = product(cast, f"product-{number}")
        if number % 2:
            published(cast, slug=f"triage-{number}", of=of)
        drafts = [draft(cast, slug=f"triage-{number}", of=of) for _ in people]
        assert answers(*[publishing(cast, row) for row in drafts]) == [200] * 4
        with every_tenant():
            rows = WorkflowDefinition.objects.filter(product=of).select_related("contract")
            assert Counter(row.state for row in rows) == {"active": 1, "archived": len(rows) - 1}
            states = Counter(Contract.objects.filter(slug=f"triage-{number}").values_list("state", flat=True))
            assert states == {"draft": 1, "retired": len(rows) - 1}
            (active,) = [row for row in rows if row.state == "active"]
            assert active.contract is not None
            assert active.contract.state == "draft"
            assert Policy.objects.filter(slug="workflows").count() == 1


def test_published_at_once_with_approvals_each_gets_an_open_contract(cast: Cast, people: list[Any]) -> None:
    first = published(cast, approved=True)
    people[0].post(f"/api/v1/contracts/{first.contract_id}/open")
    drafts = [draft(cast) for _ in people]
    assert answers(*[publishing(cast, row) for row in drafts]) == [200] * 4
    with every_tenant():
        assert set(Contract.objects.filter(slug="triage").values_list("state", flat=True)) == {"open"}
        assert Contract.objects.filter(slug="triage").count() == 5


def test_one_draft_is_published_once(cast: Cast, people: list[Any]) -> None:
    row = draft(cast)
    assert sorted(answers(*[publishing(cast, row) for _ in people])) == [200, 409, 409, 409]
    with every_tenant():
        assert LedgerEntry.objects.filter(subject_id=row.id, action="definition.published").count() == 1
        assert Contract.objects.filter(slug="triage").count() == 1


def altered(index: int) -> dict[str, Any]:
    """Each differs from the others in a place of its own."""
    changed = document()
    changed["steps"][["consent_gate", "image_check", "ai_review", "emit_done"][index]]["timeout_seconds"] = 7
    return changed


def test_the_history_of_a_draft_that_several_change_at_once_gives_its_document_back(
    cast: Cast, people: list[Any]
) -> None:
    for _ in range(ROUNDS):
        row = draft(cast)
        url = f"{URL}/{row.id}"
        posts = [(one, "patch", url, {"definition": altered(index)}) for index, one in enumerate(people)]
        assert answers(*posts) == [200] * 4
        with every_tenant():
            assert document_at(definition=row, number=5) == stored(row).definition


def test_a_draft_is_never_changed_after_it_was_published(cast: Cast, people: list[Any]) -> None:
    for number in range(ROUNDS):
        row = draft(cast, slug=f"triage-{number}", of=product(cast, f"product-{number}"))
        url = f"{URL}/{row.id}"
        published_, *changed = answers(
            publishing(cast, row),
            *[(one, "patch", url, {"definition": altered(index)}) for index, one in enumerate(people[1:])],
        )
        assert published_ == 200
        assert set(changed) <= {200, 409}
        with every_tenant():
            definition = stored(row)
            last = WorkflowDefinitionRevision.objects.filter(workflow_definition=row).order_by("number").last()
            assert last is not None
            assert (last.number, last.sha256) == (2 + changed.count(200), definition.snapshot_sha256)
            assert last.diff["status"]["after"] == "active"


def test_publishing_and_approving_at_once_do_not_wait_for_each_other_in_a_circle(cast: Cast, people: list[Any]) -> None:
    owner = cast.session(cast.owner)
    for number in range(ROUNDS):
        of = product(cast, f"product-{number}")
        first = published(cast, slug=f"triage-{number}", of=of)
        assert first.contract is not None
        approve(cast, first.contract, "metadata_boundary")
        second = draft(cast, slug=f"triage-{number}", of=of)
        board = f"/api/v1/contracts/{first.contract_id}/readiness"
        made, *decided = answers(
            publishing(cast, second),
            (owner, "post", f"{board}/retry_and_replay/approve", {"rationale": "Looked at it"}),
            (owner, "post", f"{board}/metadata_boundary/revoke", {"rationale": "Looked at it"}),
        )
        assert made == 200
        assert set(decided) <= {200, 409}
