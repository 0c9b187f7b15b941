"""One organization with at least one row for every address: the demo, and what its API makes of it.

Committed for real, once; each request against it is rolled back, so that all of them meet the same world.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.core.files.storage import storages
from django.db import transaction
from django.test import Client
from django.utils import timezone

from attempts.models import ChatIdentity
from attempts.services.chat_workspace import workspace_connect
from config.demo.secrets import DemoSecrets
from config.demo.seed import demo_seed
from governance.models import Organization, User
from governance.roles import PERMISSIONS_OF_ROLE
from governance.services.evidence_build import evidence_build
from governance.services.person import person_create
from governance.services.role import person_role_give
from governance.services.verification import verification_ask
from reasoncodes.actors import SYSTEM
from reasoncodes.tenancy import every_tenant, leave_scope
from tests.cast import Cast
from tests.governance.ledger.sealing import seal_all
from workflows.services.message_take import message_take
from workflows.streams import Message

API = "/api/v1"
NOW_AND_THEN = {"reason_code": "rehearsal"}


@contextmanager
def undone() -> Iterator[None]:
    """What happens inside has not happened afterwards. To the services it is the outermost transaction."""
    logging.disable(logging.WARNING)  # thousands of lines that nobody reads
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]  # as Django's own tests say it
    try:
        with block:
            yield
            transaction.set_rollback(True)
    finally:
        logging.disable(logging.NOTSET)
        leave_scope()


class World:
    """`ids` by the name of a route's parameter; `special` where one operation needs another row than the others."""

    def __init__(self, folder: Path) -> None:
        self.facts = demo_seed(at=timezone.now(), secrets=DemoSecrets(folder / "demo.json"))
        self.key = str(self.facts["keys"]["admin"])
        self.api = Cast.with_key(self.key)
        self.everybody = self._person("everybody", "demo")
        self.stranger = self._person("stranger", "other")
        self.people = Cast.session(self.everybody)
        self.ids: dict[str, list[str]] = {}
        self.special: dict[str, dict[str, str]] = {}
        self.values: dict[str, Any] = {"org_id": self.facts["organization"]["id"]}
        self.query = {"org_id": self.facts["organization"]["id"]}
        self.headers = {"X-Purpose": "audit"}
        self._attempts()
        self._runs()
        self._governance()
        self._outside()
        self._record()
        verification_ask(actor=SYSTEM, at=timezone.now())
        self.api.put(f"{API}/ledger/entries/{self.ids['entry_id'][0]}")  # a violation

    @staticmethod
    def _person(username: str, organization: str) -> User:
        """With every role there is: whom nothing but a rule can refuse."""
        with every_tenant():
            user = person_create(actor=SYSTEM, at=timezone.now(), username=username, is_staff=True)
            where = Organization.objects.get(slug=organization)
            for role in PERMISSIONS_OF_ROLE:
                person_role_give(actor=SYSTEM, at=timezone.now(), user=user, organization=where, role=role)
        return user

    def post(self, path: str, body: Any = None, *, client: Any = None, **headers: str) -> Any:
        answer = (client or self.api).post(f"{API}{path}", body or {}, format="json", headers=headers)
        assert answer.status_code < 300, (path, answer.status_code, answer.content)
        return answer.json()

    def get(self, path: str) -> Any:
        answer = self.api.get(f"{API}{path}")
        assert answer.status_code == 200, (path, answer.status_code, answer.content)
        return answer.json()

    def first(self, path: str) -> str:
        return str(self.get(path)["results"][0]["id"])

    def ask(self, contract: str) -> str:
        key = {"Idempotency-Key": f"contract-{uuid4()}"}
        return str(self.post(f"/execution/{contract}/1/attempts", self.facts["attempt_example"], **key)["id"])

    def _attempts(self) -> None:
        held = self.get("/reviews?status=requested")["results"]
        review = next(one for one in held if one["risk_tier"] == "low")  # a high one would ask for a fresh sign-in
        free, leased, done = (self.ask("demo-allow") for _ in range(3))
        failed = self.ask("demo-timeline")
        tokens = {one: self.post(f"/attempts/{one}/lease")["lease_token"] for one in (leased, failed, done)}
        self.post(f"/attempts/{failed}/fail", {"lease_token": tokens[failed], "category": "adapter_failure"})
        self.post(f"/attempts/{done}/complete", {"lease_token": tokens[done], "response_metadata": {"status": 200}})
        self.ids |= {"attempt_id": [free, leased, failed, done], "review_id": [str(review["id"])]}
        self.ids["case_id"] = [self.first("/quarantine-cases")]
        self.ids["record_id"] = [self.first("/idempotency-keys")]
        self.ids["decision_id"] = [self.first("/decisions")]
        for name in ("complete", "fail", "heartbeat"):
            self.special[f"attempts_{name}"] = {"attempt_id": leased}
        self.special["attempts_replay"] = {"attempt_id": failed}
        digest = self.get(f"/reviews/{review['id']}")["action_digest"]
        self.values |= {"lease_token": tokens[leased], "action_digest": digest}
        self.ids["workflow_slug"] = ["demo-allow", "demo-hold", "demo-deny", "demo-closed"]
        self.ids["contract_version"] = ["1"]

    def _event(self, **changes: Any) -> dict[str, Any]:
        again = {"event_id": str(uuid4()), "case_id": str(uuid4()), "correlation_id": str(uuid4())}
        return dict(self.facts["event_example"]) | again | changes

    def _runs(self) -> None:
        running, halted = (str(self.post("/events", self._event())["instance_id"]) for _ in range(2))
        self.post(f"/workflow-instances/{halted}/halt", NOW_AND_THEN)
        lost = {"event_type": "consent.check.completed", "payload": {"granted": True, "missing_types": []}}
        self.ids |= {"instance_id": [running, halted], "event_id": [self._kept(lost)]}
        for name in ("resume", "retry_step"):
            self.special[f"workflow_instances_{name}"] = {"instance_id": halted}
        order = {"action": "halt", **NOW_AND_THEN, "instance_ids": [running]}
        self.ids["bulk_id"] = [str(self.post("/workflow-instances/bulk-interventions", order)["id"])]
        template = self.first("/workflow-templates")
        draft = str(self.post("/workflow-definitions", {"template_id": template, "slug": "drafted"})["id"])
        published = str(self.facts["definitions"]["ai_only"]["id"])
        self.ids |= {"template_id": [template], "definition_id": [draft, published]}
        self.special["workflow_definitions_archive"] = {"definition_id": published}
        self.ids |= {"name": ["case.created"], "version": ["v1"]}
        self.values |= {"template_id": template, "instance_ids": [running], "definition_id": published}
        self.values["product_id"] = self.facts["event_example"]["product_id"]

    def _kept(self, changes: dict[str, Any]) -> str:
        """An event for which there is no run."""
        self.post("/events", self._event(**changes))
        return self.first("/events")

    def _governance(self) -> None:
        contracts = self.facts["contracts"]
        names = ("closed", "allow", "hold")
        self.ids["contract_id"] = [str(contracts[name]["id"]) for name in names]
        for name in ("suspend", "retire", "new_version"):
            self.special[f"contracts_{name}"] = {"contract_id": str(contracts["allow"]["id"])}
        self.ids |= {"area": ["metadata_boundary"], "verdict": ["approve", "reject", "revoke"]}
        rules = [{"id": "all", "when": "true", "verdict": "allow"}]
        draft = str(self.post("/policies", {"slug": "drafted", "title": "Drafted", "rules": rules})["id"])
        self.ids["policy_id"] = [draft, self.first("/policies?state=active")]
        self.special["policies_archive"] = {"policy_id": self.ids["policy_id"][1]}
        shutdown = {"scope": "contract", "target": "demo-closed", "drill": True, **NOW_AND_THEN}
        self.ids["shutdown_id"] = [str(self.post("/shutdowns", shutdown)["id"])]
        hold = {"scope": "context", "target": "ctx-held", "reason_code": "litigation"}
        self.ids["hold_id"] = [str(self.post("/legal-holds", hold)["id"])]
        self.ids["deletion_id"] = [str(self.post("/deletions", {"context_ref": "ctx-0001"})["id"])]
        self.ids["export_id"] = [str(self.post("/exports", {"reason_code": "data_subject_request"})["id"])]
        code = {"scope": "halt", "code": "ours", "label": "Ours"}
        ours = str(self.post("/reason-codes", code)["id"])
        self.ids["reason_code_id"] = [ours, self.first("/reason-codes?scope=denial")]
        self.values |= {"policy_slug": "demo-allow", "reason_code": "rehearsal", "to_username": "reviewer2"}

    def _outside(self) -> None:
        """Webhooks, chat and mail; nothing is sent."""
        hook = {"url": "https://hooks.example.com/holdpoint", "events": ["*"]}
        endpoint = str(self.post("/webhook-endpoints", hook)["id"])
        told = self.post(f"/webhook-endpoints/{endpoint}/test", NOW_AND_THEN)
        self.ids |= {"endpoint_id": [endpoint], "delivery_id": [str(told["id"])]}
        self.ids["route_id"] = [str(self.post("/notification-routes", {"channel": "email"})["id"])]
        secrets = {"bot_token": f"xoxb-{'1' * 24}", "signing_secret": "2" * 32}
        with every_tenant():
            organization = Organization.objects.get(slug="demo")
            workspace = workspace_connect(
                actor=SYSTEM, at=timezone.now(), organization=organization, name="Demo", team_id="T0DEMO", **secrets
            )
            person, now = User.objects.get(username="reviewer"), timezone.now()
            identity = ChatIdentity.objects.create(workspace=workspace, user=person, chat_user="U0RITA", linked_at=now)
        self.ids |= {"workspace_id": [str(workspace.id)], "identity_id": [str(identity.id)]}
        message_take(message=Message("case.created", "1-0", {}, deliveries=99), at=now, region="US")  # is parked

    def _record(self) -> None:
        bundle = str(self.post(f"/attempts/{self.ids['attempt_id'][0]}/evidence")["id"])
        self.post(f"/workflow-instances/{self.ids['instance_id'][0]}/evidence")
        for _ in range(2):
            with every_tenant():
                evidence_build(bundle_id=bundle, now=timezone.now, storage=storages["evidence"])  # type: ignore[arg-type]
            seal_all()
        self.ids["bundle_id"] = [bundle]
        self.ids["entry_id"] = [str(row["id"]) for row in self.get("/ledger/entries?page_size=200")["results"][-3:]]
        self.ids["size"] = [str(row["size"]) for row in self.get("/ledger/checkpoints")["results"]]

    def parameters(self, operation: str, names: list[str]) -> dict[str, str]:
        """One value for each of a route's parameters: the best one for the operation."""
        own = self.special.get(operation, {})
        return {name: own.get(name) or self.ids[name][0] for name in names}

    def row_of(self, model: Any) -> str:
        """The id of a row that the demo organization has, for a page of the console."""
        with every_tenant():
            rows = model._default_manager.order_by("pk")
            if model is Organization:
                rows = rows.filter(slug="demo")
            elif model is User:
                rows = rows.filter(username="reviewer")
            elif any(field.name == "organization" for field in model._meta.fields):
                rows = rows.filter(organization__slug="demo")
            elif any(field.name == "attempt" for field in model._meta.fields):
                rows = rows.filter(attempt__organization__slug="demo")
            found = rows.values_list("pk", flat=True).first() or self._of_nobody(model)
        return str(found or uuid4())

    @staticmethod
    def _of_nobody(model: Any) -> Any:
        """A row that no organization has, such as a message that nobody signed."""
        if not any(field.name == "organization" and field.null for field in model._meta.fields):
            return None
        return model._default_manager.filter(organization=None).values_list("pk", flat=True).first()

    def cookies(self, user: User) -> dict[str, str]:
        client = Client()
        client.force_login(user)
        return {name: morsel.value for name, morsel in client.cookies.items()}
