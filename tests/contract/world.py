"""One organization with at least one row for every address: the demo, and what its API makes of it.

Committed for real, once; each request against it is rolled back, so that all of them meet the same world.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.core.files.storage import storages
from django.db import transaction
from django.test import Client
from django.utils import timezone

from attempts.execution.services.executor import executor_name
from attempts.execution.services.lease import attempt_lease, for_executor
from attempts.execution.services.outcome import lease_token_make
from attempts.lifecycle.models import Attempt
from attempts.notify.models import ChatIdentity, Notification
from attempts.notify.services.chat_workspace import workspace_connect
from attempts.notify.states import NotifyKind
from attempts.proposals.models import ShutdownProposal
from attempts.reviews.models import Review
from attempts.reviews.services.human_task import TaskAsked, human_task_open
from config.demo.contracts import DemoContract, contract_make
from config.demo.secrets import DemoSecrets
from config.demo.seed import demo_seed
from governance.boundary.rules.forms import EMPTY_FORM
from governance.evidence.services.build import evidence_build
from governance.identity.services.providers import identity_provider_create
from governance.people.models import User
from governance.people.rules.roles import PERMISSIONS_OF_ROLE
from governance.people.selectors.people import credential_for_secret
from governance.people.services.people import person_create, person_role_give
from governance.retention.tasks import export_build_task
from governance.sealing.selectors.witnesses import epoch_mark
from governance.sealing.services.verification import verification_ask
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant, leave_scope
from tests.authenticator import SoftKey, register
from tests.cast import Cast
from tests.governance.ledger.sealing import seal_all
from tests.workflows.running import ANSWERS
from tests.workflows.stream_support import signed
from workflows.events.adapters.streams import StreamMessage
from workflows.events.services.messages import message_take
from workflows.modules.services.registry import module_register

API = "/api/v1"
DAY = 86_400
NOW_AND_THEN = {"reason_code": "rehearsal"}
UNDONE_BY = {"failure_quarantine": {"compensation_contract": "demo-allow/1"}}
DRAFT = {"slug": "nobody-decided", "title": "A draft", "adapter": "external", "policy_slug": "demo-allow"}
DRAFT |= {"effect": "once", "risk_tier": "low", "review_owner": "customer_clinician"}
ROUTES = ({"channel": "email"}, {"channel": "email", "tier": "sa_qa"})


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
        self.special: dict[str, dict[str, Any]] = {}
        self.values: dict[str, Any] = {"org_id": self.facts["organization"]["id"]}
        self.query = {"org_id": self.facts["organization"]["id"]}
        self.headers = {"X-Purpose": "audit"}
        self._contracts()
        self._governance()
        self._attempts()
        self._runs()
        self._outside()
        self._provider()
        self._modules()
        # Who has a passkey can ask for something to sign.
        for person in (User.objects.get(username="reviewer"), self.everybody):
            register(person, SoftKey("ES256"))
        self._record()
        verification_ask(actor=SYSTEM, at=timezone.now())
        self.api.put(f"{API}/ledger/entries/{self.ids['entry_id'][0]}")  # a violation

    @staticmethod
    def _person(username: str, organization: str) -> User:
        """With every role there is: whom nothing but a rule can refuse. Not forbidden pairs either, which would leave
        doors untried."""
        give: Any = {"actor": SYSTEM, "at": timezone.now(), "exception": True}
        with every_tenant():
            user = person_create(actor=SYSTEM, at=timezone.now(), username=username, is_staff=True)
            where = Organization.objects.get(slug=organization)
            for role in (*PERMISSIONS_OF_ROLE, "reviewer:customer_clinician"):
                person_role_give(**give, user=user, organization=where, role=role)
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
        free, leased, done, withdrawn = (self.ask("demo-allow") for _ in range(4))
        failed = self.ask("reversible")
        self.post(f"/attempts/{withdrawn}/cancel")
        tokens = {one: self.lease(one) for one in (leased, failed, done)}
        self.post(f"/attempts/{failed}/fail", {"lease_token": tokens[failed], "category": "adapter_failure"})
        self.post(f"/attempts/{done}/complete", {"lease_token": tokens[done], "response_metadata": {"status": 200}})
        self.ids |= {"attempt_id": [free, leased, failed, done], "review_id": [str(review["id"])]}
        self.ids["case_id"] = [self.first("/quarantine-cases")]
        # With an incident, so that it can be handed over to it.
        self.post(f"/quarantine-cases/{self.ids['case_id'][0]}/link-incident", {"incident_ref": "INC-17"})
        self.ids["proposal_id"] = [self._proposal(failed)]
        self.ids["record_id"] = [self.first("/idempotency-keys")]
        self.ids["decision_id"] = [self.first("/decisions")]
        for name in ("complete", "fail", "heartbeat"):
            self.special[f"attempts_{name}"] = {"attempt_id": leased, "lease_token": tokens[leased]}
        self.special["attempts_fail"] |= {"reason_code": "adapter_failed"}
        self.special["attempts_replay"] = {"attempt_id": withdrawn}
        self.special["quarantine_cases_compensate"] = {"finding": "happened"}
        self._reviews(str(review["id"]), next(str(one["id"]) for one in held if one["id"] != review["id"]))
        self.ids["workflow_slug"] = ["demo-allow", "demo-hold", "demo-deny", "demo-closed"]
        self.ids["contract_version"] = ["1"]

    @staticmethod
    def _proposal(attempt: str) -> str:
        """As the clock makes it when many attempts failed."""
        with every_tenant():
            found = Attempt.objects.get(id=attempt)
            evidence = {"cases": 1, "categories": {"adapter_failure": 1}, "newest": []}
            proposal = ShutdownProposal(
                organization_id=found.organization_id,
                contract_id=found.contract_id,
                after=1,
                window_seconds=600,
                evidence=evidence | {"first": found.created_at.isoformat(), "last": found.created_at.isoformat()},
                at=found.created_at,
            )
            proposal.save(force_insert=True)
            return str(proposal.id)

    def lease(self, attempt: str) -> str:
        """As the API gives it, but for as long as these tests last."""
        credential = credential_for_secret(secret=self.key, at=timezone.now())
        assert credential is not None
        actor = credential.actor
        with every_tenant():
            chosen = for_executor(actor=actor, attempt_id=UUID(attempt))
            (granted,) = attempt_lease(
                actor=actor, at=timezone.now(), owner=executor_name(actor), selection=chosen, seconds=DAY
            ).granted
            fence = granted.attempt.lease_token
            return lease_token_make(attempt_id=granted.attempt.id, fence=fence, epoch=epoch_mark())

    def _reviews(self, asked: str, claimed: str) -> None:
        self.values["action_digest"] = self.get(f"/reviews/{asked}")["action_digest"]
        self.values["outcome"] = "approve"
        self.special["reviews_reject"] = {"reason_code": "reviewer_wrong_target"}
        self.post(f"/reviews/{claimed}/claim", client=self.people)
        ends = (timezone.now() + timedelta(days=7)).isoformat()
        cover = {"tier": "customer_clinician", "reason_code": "handover", "ends_at": ends}
        away = Cast.session(User.objects.get(username="reviewer"))
        made = self.post("/delegations", {**cover, "to_username": "reviewer2"}, client=away)
        self.ids["delegation_id"] = [str(made["id"])]
        self.special["delegations_create"] = {**cover, "starts_at": timezone.now().isoformat()}
        self.special["reviews_delegate"] = {"reason_code": "handover"}
        self.special["reviews_release"] = {"review_id": claimed}

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
        self._judgement()

    def _judgement(self) -> None:
        """A run that has come to the step where a person says what they see."""
        definition = self.get(f"/workflow-definitions/{self.facts['definitions']['clinician_only']['id']}")
        case = {"case_id": str(uuid4()), "product_id": definition["product_id"]}
        run = str(self.post("/events", self._event(**case))["instance_id"])
        for name, payload in (ANSWERS[f"{kind}.requested"] for kind in ("consent.check", "case.images_check")):
            (step,) = self.get(f"/workflow-instances/{run}")["current_steps"]
            self.post(
                "/events", self._event(event_type=name, payload=payload, correlation_id=step["correlation_id"], **case)
            )
        review = self.first("/reviews?kind=human_review")
        card = {"review_id": review, "action_digest": self.get(f"/reviews/{review}")["action_digest"]}
        for name in ("confirm", "override", "decline"):
            self.special[f"reviews_{name}"] = dict(card)
        self.special["reviews_decline"]["reason_code"] = "not_my_speciality"
        task = str(self._task().id)
        self.special["reviews_decide"] = {
            "review_id": task,
            "action_digest": "5" * 64,
            "outcome": "approve",
            "form": {},
        }

    @staticmethod
    def _task() -> Review:
        shown = {"title": "Release", "facts": {}, "form": EMPTY_FORM, "outcomes": ["approve"], "approvals": 1}
        with every_tenant(), transaction.atomic():
            asked = TaskAsked(
                organization_id=Organization.objects.get(slug="demo").id,
                origin_step=uuid4(),
                tier="customer_clinician",
                step_kind="human_task",
                shown=shown,
                digest="5" * 64,
                context_ref="case/4711",
                expires_at=timezone.now() + timedelta(days=1),
            )
            return human_task_open(asked=asked, actor=SYSTEM, at=timezone.now())

    def _kept(self, changes: dict[str, Any]) -> str:
        """An event for which there is no run."""
        self.post("/events", self._event(**changes))
        return self.first("/events")

    def _contracts(self) -> None:
        contracts = self.facts["contracts"]
        closed, allow, hold, queue = (str(contracts[name]["id"]) for name in ("closed", "allow", "hold", "queue"))
        self.ids["contract_id"] = [closed, allow, hold]
        for name in ("suspend", "retire", "new_version"):
            self.special[f"contracts_{name}"] = {"contract_id": allow}
        self.special["contracts_change"] = {"contract_id": closed}
        self.special["contracts_discard"] = {"contract_id": str(self.post("/contracts", DRAFT)["id"])}
        self.post(f"/contracts/{queue}/suspend", NOW_AND_THEN)
        self.special["contracts_open"] = {"contract_id": queue}
        reversible = DemoContract("Can be undone", "demo-allow", changes=UNDONE_BY)
        with every_tenant():
            contract_make(
                Organization.objects.get(slug="demo"), slug="reversible", wanted=reversible, at=timezone.now()
            )
        self.ids |= {"area": ["metadata_boundary"], "verdict": ["approve", "reject", "revoke"]}

    def _governance(self) -> None:
        rules = [{"id": "all", "when": "true", "verdict": "allow"}]
        draft = str(self.post("/policies", {"slug": "drafted", "title": "Drafted", "rules": rules})["id"])
        self.ids["policy_id"] = [draft, self.first("/policies?state=active")]
        self.special["policies_archive"] = {"policy_id": self.ids["policy_id"][1]}
        shutdown = {"scope": "contract", "target": "demo-closed", "drill": True, **NOW_AND_THEN}
        self.ids["shutdown_id"] = [str(self.post("/shutdowns", shutdown)["id"])]
        hold = {"scope": "context", "target": "ctx-held", "reason_code": "litigation"}
        self.ids["hold_id"] = [str(self.post("/legal-holds", hold)["id"])]
        self.ids["deletion_id"] = [str(self.post("/deletions", {"context_ref": "ctx-of-nobody"})["id"])]
        self.special["deletions_refuse"] = {"reason_code": "nothing_to_erase"}
        self.ids["export_id"] = [str(self.post("/exports", {"reason_code": "data_subject_request"})["id"])]
        export_build_task(self.ids["export_id"][0])
        code = {"scope": "halt", "code": "ours", "label": "Ours"}
        ours = str(self.post("/reason-codes", code)["id"])
        override = {"scope": "halt", "code": "rehearsal", "label": "Drill"}
        self.special["reason_codes_take_back"] = {"reason_code_id": str(self.post("/reason-codes", override)["id"])}
        self.ids["tier_id"] = [str(self.post("/review-tiers", {"slug": "night", "label": "Night shift"})["id"])]
        self.ids["product_id"] = [str(self.post("/products", {"slug": "returns", "name": "Returns"})["id"])]
        self.ids["reason_code_id"] = [ours, self.first("/reason-codes?scope=denial")]
        self.values |= {"policy_slug": "demo-allow", "reason_code": "rehearsal", "to_username": "reviewer2"}

    def _outside(self) -> None:
        """Webhooks, chat and mail; nothing is sent."""
        hook = {"url": "https://hooks.example.com/holdpoint", "events": ["*"]}
        endpoint = str(self.post("/webhook-endpoints", hook)["id"])
        sent = self.post(f"/webhook-endpoints/{endpoint}/test", NOW_AND_THEN)
        self.ids |= {"endpoint_id": [endpoint], "delivery_id": [str(sent["id"])]}
        self.post(f"/webhook-endpoints/{endpoint}/disable", NOW_AND_THEN)  # what waits for it has failed
        self.post(f"/webhook-endpoints/{endpoint}/enable")
        route, other = (str(self.post("/notification-routes", body)["id"]) for body in ROUTES)
        closed = str(self.post("/webhook-endpoints", hook)["id"])
        self.post(f"/webhook-endpoints/{closed}/disable", NOW_AND_THEN)
        self.special["webhook_endpoints_enable"] = {"endpoint_id": closed}
        self.post(f"/notification-routes/{other}/disable", NOW_AND_THEN)
        self.special["notification_routes_enable"] = {"route_id": other}
        self.ids["route_id"] = [route]
        secrets = {"bot_token": f"xoxb-{'1' * 24}", "signing_secret": "2" * 32}
        with every_tenant():
            organization = Organization.objects.get(slug="demo")
            workspace = workspace_connect(
                actor=SYSTEM, at=timezone.now(), organization=organization, name="Demo", team_id="T0DEMO", **secrets
            )
            person, now = User.objects.get(username="reviewer"), timezone.now()
            identity = ChatIdentity.objects.create(workspace=workspace, user=person, chat_user="U0RITA", linked_at=now)
            told = {"review_id": self.ids["review_id"][0], "route_id": self.ids["route_id"][0], "kind": NotifyKind.CARD}
            Notification.objects.create(organization=organization, **told, created_at=now, next_try_at=now)
        self.ids |= {"workspace_id": [str(workspace.id)], "identity_id": [str(identity.id)]}
        message = StreamMessage("case.created", "1-0", signed(self.key, {"event_id": str(uuid4())}))
        message_take(message=message, at=now, region="US")  # is parked
        self.ids["message_id"] = [self.first("/parked-messages?status=parked")]

    def _provider(self) -> None:
        """An identity provider, and a change of it that waits for a second person."""
        terms = {"issuer": "https://login.clinic.example", "client_id": "holdpoint", "mapping": {}}
        with every_tenant():
            made = identity_provider_create(
                actor=SYSTEM,
                at=timezone.now(),
                organization=Organization.objects.get(slug="demo"),
                slug="demo-login",
                kind="oidc",
                terms=terms,
            )
        answer = self.people.patch(f"{API}/identity-providers/{made.id}", {"roles_claim": "roles"}, format="json")
        assert answer.status_code == 202, answer.content
        self.ids |= {"provider_id": [str(made.id)], "change_id": [str(answer.json()["id"])]}
        # Only who proposed one withdraws it.
        operator = Cast.session(User.objects.get(username="operator"))
        own = operator.patch(f"{API}/identity-providers/{made.id}", {"roles_claim": "groups"}, format="json")
        assert own.status_code == 202, own.content
        self.special["authority_changes_withdraw"] = {"change_id": str(own.json()["id"])}

    def _modules(self) -> None:
        """One that is called over http, with an account that is bound to it, and one that was disabled."""
        active, disabled = (self._module(slug) for slug in ("parcels", "parcels-before"))
        self.post(f"/modules/{disabled}/disable", NOW_AND_THEN)
        bound = self.post(f"/modules/{active}/accounts", {"service_account": "executor"})
        self.ids |= {"module_id": [active], "account_id": [str(bound["id"])]}
        self.special["modules_enable"] = {"module_id": disabled}
        self.special["modules_bind_account"] = {"service_account": "ledger"}

    @staticmethod
    def _module(slug: str) -> str:
        terms = {"transport": "http", "url": "https://parcels.example", "operations": {"send": {"effect": "once"}}}
        with every_tenant():
            made = module_register(
                actor=SYSTEM,
                at=timezone.now(),
                organization_id=Organization.objects.get(slug="demo").id,
                slug=slug,
                terms=terms,
                private_hosts=frozenset(),
            )
        return str(made.module.id)

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
        self.query |= {"to": self.ids["size"][0], "from": self.ids["size"][-1]}

    def parameters(self, operation: str, names: list[str]) -> dict[str, str]:
        """One value for each of a route's parameters: the best one for the operation."""
        own = self.special.get(operation, {})
        return {name: own.get(name) or self.ids[name][0] for name in names}

    @cache  # noqa: B019  # there is one world
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
            found = rows.values_list("pk", flat=True).first()
        return str(found or uuid4())

    def cookies(self, user: User) -> dict[str, str]:
        client = Client()
        client.force_login(user)
        return {name: morsel.value for name, morsel in client.cookies.items()}
