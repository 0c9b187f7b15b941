"""Words of the review tests: holds made over HTTP, people's doors, and what is on record."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import count
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from attempts.lifecycle.models import Attempt, AttemptTransition
from attempts.reviews.models import Review, ReviewVote
from attempts.reviews.selectors.reviews import database_now
from attempts.reviews.services.human_review import human_review_open
from attempts.reviews.services.human_task import TaskAsked, human_task_open
from governance.boundary.rules.forms import EMPTY_FORM
from governance.contracts.rules.documents import default_documents
from governance.ledger.models import LedgerEntry
from governance.people.models import ServiceAccount, User
from governance.people.services.accounts import api_key_issue
from governance.violations.models import GovernanceViolation
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.factories import ServiceAccountFactory
from tests.governance.support import in_parallel
from tests.governed import HOLD, open_contract
from tests.tampering import triggers_off

TIER = "customer_clinician"
REVIEWER = f"reviewer:{TIER}"
REJECT = {"reason_code": "reviewer_wrong_target"}
DECLINE = {"reason_code": "not_my_speciality"}
RELEASING = ("approve", "reject")
JUDGING = ("confirm", "override", "decline")
VERBS = ("claim", "release", "delegate", *RELEASING, *JUDGING, "decide")


def bucket_rule(buckets: list[dict[str, Any]]) -> dict[str, Any]:
    """The holding rule, with several tiers that must sign."""
    single = ("tier", "approvals_required")
    return {name: value for name, value in HOLD[0].items() if name not in single} | {"buckets": buckets}


@dataclass
class Clinic:
    """An open contract that holds everything, a service that asks, and the person behind that service."""

    cast: Cast
    approvals: int = 1
    adapter: str = "external"
    buckets: list[dict[str, Any]] | None = None
    signature: str = ""

    def __post_init__(self) -> None:
        documents = default_documents()
        documents["concurrency_and_locks"]["limits"] |= {"per_context": None, "per_workflow": None, "per_tenant": None}
        if self.signature:
            documents["attempt_identity_envelope"]["signature"] = self.signature
        rules = [bucket_rule(self.buckets) if self.buckets else HOLD[0] | {"approvals_required": self.approvals}]
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


def ask_task(cast: Cast) -> Review:
    """A workflow step with outcomes of its own."""
    shown = {
        "title": "Look",
        "facts": {},
        "form": EMPTY_FORM,
        "outcomes": ["approve", "reject", "pass"],
        "approvals": 1,
    }
    at = database_now()
    asked = TaskAsked(
        organization_id=cast.organization.id,
        origin_step=uuid4(),
        tier=TIER,
        step_kind="human_task",
        shown=shown,
        digest="d" * 64,
        context_ref="case-0042",
        expires_at=at + timedelta(hours=1),
    )
    with every_tenant(), transaction.atomic():
        return human_task_open(asked=asked, actor=SYSTEM, at=at)


def ask(cast: Cast, **changes: Any) -> Review:
    """A workflow step that asks for a person's judgement."""
    at = database_now()
    asked = {
        "organization_id": cast.organization.id,
        "origin_step": uuid4(),
        "tier": TIER,
        "context_ref": "case-0042",
        "label": "Check the finding",
        "digest": "d" * 64,
        "expires_at": at + timedelta(hours=1),
        "actor": SYSTEM,
        "at": at,
    }
    with every_tenant(), transaction.atomic():
        return human_review_open(**(asked | changes))


def url(review: Review, verb: str = "") -> str:
    return f"/api/v1/reviews/{review.id}" + (f"/{verb}" if verb else "")


def body_for(review: Review, verb: str) -> dict[str, Any]:
    if verb == "delegate":
        return {"to_username": "dora", "hours": 24}
    if verb == "decide":
        return {"action_digest": review.action_digest, "outcome": "pass"}
    if verb in RELEASING + JUDGING:
        return {"action_digest": review.action_digest} | {"reject": REJECT, "decline": DECLINE}.get(verb, {})
    return {}


def do(client: Any, review: Review, verb: str, **changes: Any) -> Any:
    return client.post(url(review, verb), body_for(review, verb) | changes, format="json")


def problem(answer: Any) -> tuple[int, str]:
    assert answer["Content-Type"] == "application/problem+json", (answer.status_code, answer.content)
    return answer.status_code, answer.json()["type"].rsplit("/", 1)[1]


def status_of(review: Review) -> tuple[str, str, str]:
    """The review's status, the attempt's state and reason; empty words where there is no attempt."""
    with every_tenant():
        row = Review.objects.select_related("attempt").get(id=review.id)
        attempt = row.attempt
        return row.status, attempt.state if attempt else "", attempt.reason_code if attempt else ""


def actions(review: Review) -> list[str]:
    """What the ledger says about a review and its attempt since it was opened, in the order of writing."""
    subjects = [review.id, *([review.attempt_id] if review.attempt_id else [])]
    with every_tenant():
        rows = LedgerEntry.objects.filter(subject_id__in=subjects).order_by("id")
        found = [move.action for row in rows for move in row.moves]
    return found[found.index("attempt.held" if review.attempt_id else "review.opened") + 1 :]


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
    """As the tables' owner, round the services and the triggers."""
    with every_tenant(), triggers_off("attempts_attempt"):
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
