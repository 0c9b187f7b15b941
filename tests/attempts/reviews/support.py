"""Words of the review tests: holds made over HTTP, people's doors, and what is on record."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import count
from typing import Any

from django.utils import timezone

from attempts.models import Attempt, AttemptTransition, Review, ReviewVote
from attempts.selectors.review import database_now
from governance.documents import default_documents
from governance.models import GovernanceViolation, LedgerEntry, ServiceAccount, User
from governance.services.api_key import api_key_issue
from reasoncodes.actors import SYSTEM
from reasoncodes.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.factories import ServiceAccountFactory
from tests.governance.support import in_parallel
from tests.governed import HOLD, open_contract

TIER = "customer_clinician"
REVIEWER = f"reviewer:{TIER}"
REJECT = {"reason_code": "reviewer_wrong_target"}
VERBS = ("claim", "release", "delegate", "approve", "reject")


@dataclass
class Clinic:
    """An open contract that holds everything, a service that asks, and the person behind that service."""

    cast: Cast
    approvals: int = 1
    adapter: str = "external"

    def __post_init__(self) -> None:
        documents = default_documents()
        documents["concurrency_and_locks"]["limits"] |= {"per_context": None, "per_workflow": None, "per_tenant": None}
        rules = [HOLD[0] | {"approvals_required": self.approvals}]
        self.contract = open_contract(self.cast, rules=rules, documents=documents, adapter=self.adapter)
        self.numbers = count(1)

    @cached_property
    def responsible(self) -> User:
        """Behind the service that asks, and a reviewer too: the tempting case."""
        return self.cast.person("boss", REVIEWER)

    @cached_property
    def service(self) -> ServiceAccount:
        account: ServiceAccount = ServiceAccountFactory(
            organization=self.cast.organization, slug="asking", responsible=self.responsible
        )
        return account

    @cached_property
    def caller(self) -> Any:
        with every_tenant():
            issued = api_key_issue(
                actor=SYSTEM, at=timezone.now(), service_account=self.service, scopes=("attempts:create",)
            )
        client = self.cast.api("attempts:create")
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {issued.secret}")
        return client

    def hold(self, **changes: Any) -> Review:
        number = next(self.numbers)
        payload = body(patient_context_ref=f"ctx-{number:04}", **changes)
        for _ in range(3):  # on a busy machine an evaluator may run out of time: denied, the key stays free
            answer = post(self.caller, payload, key=f"key-{number:08}")
            if answer.json().get("reason_code") != "enforcement_exception":
                break
        assert answer.status_code == 202, answer.content
        with every_tenant():
            return Review.objects.select_related("attempt").get(id=answer.json()["review"]["id"])


def url(review: Review, verb: str = "") -> str:
    return f"/api/v1/reviews/{review.id}" + (f"/{verb}" if verb else "")


def body_for(review: Review, verb: str) -> dict[str, Any]:
    if verb == "delegate":
        return {"to_username": "dora", "hours": 24}
    if verb in {"approve", "reject"}:
        return {"action_digest": review.action_digest} | (REJECT if verb == "reject" else {})
    return {}


def do(client: Any, review: Review, verb: str, **changes: Any) -> Any:
    return client.post(url(review, verb), body_for(review, verb) | changes, format="json")


def problem(answer: Any) -> tuple[int, str]:
    assert answer["Content-Type"] == "application/problem+json", (answer.status_code, answer.content)
    return answer.status_code, answer.json()["type"].rsplit("/", 1)[1]


def status_of(review: Review) -> tuple[str, str, str]:
    """The review's status, the attempt's state and reason."""
    with every_tenant():
        row = Review.objects.select_related("attempt").get(id=review.id)
        return row.status, row.attempt.state, row.attempt.reason_code


def actions(review: Review) -> list[str]:
    """What the ledger says about a review and its attempt since the hold, in the order of writing."""
    with every_tenant():
        rows = LedgerEntry.objects.filter(subject_id__in=[review.id, review.attempt_id]).order_by("id")
        found = list(rows.values_list("action", flat=True))
    return found[found.index("attempt.held") + 1 :]


def violations() -> list[str]:
    with every_tenant():
        return list(GovernanceViolation.objects.order_by("id").values_list("kind", flat=True))


def votes(review: Review) -> list[str]:
    with every_tenant():
        return list(ReviewVote.objects.filter(review=review).order_by("id").values_list("verdict", flat=True))


def last_move(review: Review) -> AttemptTransition:
    with every_tenant():
        return AttemptTransition.objects.filter(attempt_id=review.attempt_id).order_by("id")[::1][-1]


def set_deadline(review: Review, *, seconds: float) -> datetime:
    """Moves the deadline to so many seconds from the database's now."""
    deadline = database_now() + timedelta(seconds=seconds)
    with every_tenant():
        Review.objects.filter(id=review.id).update(expires_at=deadline)
    return deadline


def set_state(attempt_id: Any, *states: str) -> None:
    """Walks round the services, not round the database's own rules."""
    with every_tenant():
        for state in states:
            Attempt.objects.filter(id=attempt_id).update(state=state, reason_code="")


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """All of them from one start signal, each on a connection of its own."""
    barrier = threading.Barrier(len(works))

    def started(work: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            barrier.wait(20)
            return work()

        return run

    return in_parallel(*(started(work) for work in works))
