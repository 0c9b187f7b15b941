"""`/webhook-endpoints` and `/deliveries`, and their pages: who may, what is refused, what is shown once."""

from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.governance.decide.support import problem
from tests.governance.support import row_counts
from tests.workflows.webhooks.support import DELIVERIES, REASON, URL, Hooks, deliveries, entries, fresh
from workflows.webhooks.models import WebhookDelivery, WebhookEndpoint
from workflows.webhooks.services.endpoints import MOST_ENDPOINTS

MANAGE, ACT, READ = "orchestrator:publish", "orchestrator:intervene", "orchestrator:read"
PUBLIC = "https://hooks.example.com/holdpoint"


def test_an_endpoint_from_its_making_to_its_removal(hooks: Hooks) -> None:
    api = hooks.cast.api(MANAGE, ACT, READ)
    answer = api.post(URL, {"url": PUBLIC, "events": ["workflow.*", "attempt.held", "attempt.held"]}, format="json")
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    made = answer.json()
    one = f"{URL}/{made['id']}"
    assert (answer["Location"], made["events"], made["status"]) == (one, ["attempt.held", "workflow.*"], "enabled")
    shown = api.get(one).json()
    assert shown == {name: value for name, value in made.items() if name != "secret"}
    assert api.get(URL).json()["results"] == [shown]
    changed = api.patch(one, {"url": hooks.target.url, "events": ["*"], "description": "Case system"}, format="json")
    assert (changed.status_code, changed.json()["description"]) == (200, "Case system")
    rotated = api.post(f"{one}/rotate-secret", {"overlap_hours": 1}, format="json")
    assert rotated.json()["secret"] not in {made["secret"], ""}
    assert problem(api.post(f"{one}/rotate-secret", {}, format="json")) == (409, "wrong-state")  # two are in force
    tested = api.post(f"{one}/test", REASON, format="json")
    assert (tested.status_code, tested.json()["event_type"]) == (202, "webhook.test")
    hooks.send()
    found = api.get(f"{DELIVERIES}/{tested.json()['id']}").json()
    assert (found["state"], found["attempts"][0]["status"]) == ("delivered", 200)
    assert found["body"].encode() == hooks.target.requests[0]["raw"]
    assert found["attempts"][0]["headers"]["webhook-id"] == found["event_id"]
    assert [row["id"] for row in api.get(f"{one}/deliveries?state=delivered").json()["results"]] == [found["id"]]
    assert api.get(f"{one}/deliveries?state=failed").json()["results"] == []
    assert [row["id"] for row in api.get(DELIVERIES).json()["results"]] == [found["id"]]
    again = api.post(f"{DELIVERIES}/{found['id']}/redeliver", REASON, format="json")
    assert (again.status_code, again.json()["state"]) == (202, "pending")
    assert problem(api.post(f"{DELIVERIES}/{found['id']}/redeliver", REASON, format="json")) == (409, "wrong-state")
    assert problem(api.post(f"{one}/redeliver", REASON, format="json")) == (409, "wrong-state")  # nothing failed
    assert api.post(f"{one}/disable", REASON, format="json").json()["disabled_why"] == "person"
    assert problem(api.post(f"{one}/disable", REASON, format="json")) == (409, "wrong-state")
    assert [row["id"] for row in api.get(f"{URL}?status=disabled").json()["results"]] == [made["id"]]
    assert api.post(f"{one}/enable").json()["status"] == "enabled"
    assert api.post(f"{one}/redeliver", REASON, format="json").json() == {"redelivered": 1}
    assert api.delete(one).status_code == 204
    for path in (one, f"{one}/deliveries"):
        assert problem(api.get(path)) == (404, "not-found")
    assert api.get(f"{DELIVERIES}/{found['id']}").json()["state"] == "failed"  # still to be read
    actions = [action.removeprefix("webhook_endpoint.") for action, *_ in entries(uuid_of(made))]
    assert actions == [
        "created",
        "changed",
        "secret_rotated",
        "tested",
        "disabled",
        "enabled",
        "redelivered",
        "removed",
    ]


def uuid_of(made: dict[str, Any]) -> Any:
    with every_tenant():
        return WebhookEndpoint.objects.get(id=made["id"]).id


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"url": "http://hooks.example.com/"}, "/url"),
        ({"url": "https://127.0.0.1/"}, "/url"),
        ({"url": "https://user:pw@hooks.example.com/"}, "/url"),
        ({"url": "https://hooks.example.com/#x"}, "/url"),
        ({"url": "https://hooks.example.com/" + "x" * 500}, "/url"),
        ({"events": []}, "/events"),
        ({"events": ["nothing.here"]}, "/events/0"),
        ({"events": ["attempt.*", "atempt.held"]}, "/events/1"),
        ({"events": "attempt.*"}, "/events"),
        ({"description": "x" * 121}, "/description"),
        ({"colour": "red"}, ""),
    ],
)
def test_what_cannot_be_an_endpoint_is_refused_with_its_place(hooks: Hooks, change: Any, pointer: str) -> None:
    answer = hooks.cast.api(MANAGE).post(URL, {"url": PUBLIC, "events": ["*"]} | change, format="json")
    assert problem(answer) == (400, "invalid-input")
    assert pointer in {error["pointer"] for error in answer.json()["errors"]}
    assert "example.com" not in answer.content.decode()


def test_an_organization_has_so_many_endpoints_and_no_more(hooks: Hooks) -> None:
    for _ in range(MOST_ENDPOINTS):
        hooks.endpoint()
    assert problem(hooks.cast.api(MANAGE).post(URL, {"url": PUBLIC, "events": ["*"]})) == (409, "wrong-state")


def routes(endpoint: Any, delivery: Any) -> list[tuple[str, str, str]]:
    """Method, address, what a key needs."""
    one = f"{URL}/{endpoint}"
    return [
        ("get", one, READ),
        ("patch", one, MANAGE),
        ("delete", one, MANAGE),
        ("get", f"{one}/deliveries", READ),
        ("post", f"{one}/rotate-secret", MANAGE),
        ("post", f"{one}/enable", MANAGE),
        ("post", f"{one}/disable", MANAGE),
        ("post", f"{one}/test", ACT),
        ("post", f"{one}/redeliver", ACT),
        ("get", f"{DELIVERIES}/{delivery}", READ),
        ("post", f"{DELIVERIES}/{delivery}/redeliver", ACT),
    ]


def call(client: Any, method: str, path: str) -> Any:
    body = REASON if path.endswith(("disable", "test", "redeliver")) else {}
    return client.get(path) if method == "get" else getattr(client, method)(path, body, format="json")


def test_strangers_wrong_roles_and_wrong_scopes_get_nowhere(hooks: Hooks) -> None:
    cast, made = hooks.cast, hooks.endpoint()
    hooks.tell([uuid7()])
    hooks.send()
    (one,) = deliveries()
    theirs = cast.session(cast.other_operator)
    rita, audrey, norman = (cast.session(user) for user in (cast.reviewer, cast.auditor, cast.nobody))
    modules = cast.api("orchestrator:write", "attempts:create", "ledger:read")
    before = {table: count for table, count in row_counts().items() if table.startswith("workflows_")}
    for method, path, scope in [*routes(made.endpoint.id, one.id), ("get", URL, READ), ("post", URL, MANAGE)]:
        named = path not in {URL}
        # A key of its own each time: who asks for others' things again and again is suspended.
        for client in (cast.api(organization=cast.other), theirs):
            if named:
                assert problem(call(client, method, path)) == (404, "not-found"), path
        assert problem(call(modules, method, path)) == (403, "scope-missing")
        assert problem(call(norman, method, path)) == (403, "scope-missing")
        assert problem(call(rita, method, path)) == (403, "scope-missing")
        assert call(audrey, method, path).status_code == (200 if method == "get" else 403), (method, path)
        if named:
            other = path.replace(str(made.endpoint.id), str(uuid4())).replace(str(one.id), str(uuid4()))
            assert problem(call(cast.api(scope), method, other)) == (404, "not-found")
    assert {table: count for table, count in row_counts().items() if table.startswith("workflows_")} == before
    assert fresh(made.endpoint).enabled


def test_an_operators_session_and_a_governance_key_may_too(hooks: Hooks) -> None:
    for client in (hooks.cast.session(hooks.cast.operator), hooks.cast.api("governance:write", "governance:read")):
        made = client.post(URL, {"url": PUBLIC, "events": ["review.*"]}, format="json")
        assert made.status_code == 201
        assert client.get(f"{URL}/{made.json()['id']}").status_code == 200


def page(name: str, *arguments: Any) -> str:
    return reverse(f"admin:workflows_{name}", args=arguments)


def test_the_pages_show_everything_but_a_secret_and_acts_are_posted(hooks: Hooks) -> None:
    cast = hooks.cast
    alice, oscar, audrey = (cast.console(user) for user in (cast.operator, cast.other_operator, cast.auditor))
    form = {"organization": cast.organization.id, "url": hooks.target.url, "events": "attempt.*\nreview.opened"}
    shown = alice.post(page("webhookendpoint_add"), form)
    assert shown.status_code == 200
    assert "no-store" in shown["Cache-Control"]
    secret = shown.content.decode().split('class="hp-secret">')[1].split("<")[0]
    assert secret.startswith("whsec_")
    with every_tenant():
        made = WebhookEndpoint.objects.get()
    assert made.events == ["attempt.*", "review.opened"]
    refused = alice.post(page("webhookendpoint_add"), form | {"url": "https://10.0.0.1/", "events": "nope"})
    assert refused.status_code == 400
    assert "must be an https URL of a public host" in refused.content.decode()
    sent = alice.post(page("webhookendpoint_act", made.id, "test"), REASON)
    (one,) = deliveries()
    assert sent["Location"] == page("webhookdelivery_change", one.id)
    hooks.send()
    for client in (alice, audrey):
        for address in (
            page("webhookendpoint_changelist"),
            page("webhookendpoint_change", made.id),
            page("webhookdelivery_changelist"),
            page("webhookdelivery_change", one.id),
        ):
            text = client.get(address).content.decode()
            assert "webhook.test" in text or address == page("webhookendpoint_changelist"), address
            assert secret not in text
    assert "webhook-signature" in alice.get(page("webhookdelivery_change", one.id)).content.decode()
    for verb in ("change", "test", "rotate", "redeliver", "disable", "remove"):
        act = page("webhookendpoint_act", made.id, verb)
        assert (alice.get(act).status_code, audrey.get(act).status_code, oscar.get(act).status_code) == (200, 403, 404)
        assert (audrey.post(act, REASON).status_code, oscar.post(act, REASON).status_code) == (403, 404)
    assert fresh(made).updated_at == made.updated_at  # GET changed nothing
    alice.post(page("webhookdelivery_act", one.id, "redeliver"), REASON)
    assert deliveries()[0].state == "pending"
    alice.post(page("webhookendpoint_act", made.id, "disable"), REASON)
    assert "You can send them again" in alice.get(page("webhookendpoint_changelist")).content.decode()
    alice.post(page("webhookendpoint_act", made.id, "enable"))
    alice.post(page("webhookendpoint_act", made.id, "redeliver"), REASON)
    assert deliveries()[0].state == "pending"
    new = alice.post(page("webhookendpoint_act", made.id, "rotate"), {"hours": 1}).content.decode()
    assert "whsec_" in new
    assert secret not in new
    alice.post(page("webhookendpoint_act", made.id, "change"), {"url": PUBLIC, "events": "*", "description": "x"})
    assert (fresh(made).url, fresh(made).events) == (PUBLIC, ["*"])
    gone = alice.post(page("webhookendpoint_act", made.id, "remove"), REASON)
    assert gone["Location"] == page("webhookendpoint_changelist")
    assert fresh(made).removed_at is not None
    assert oscar.get(page("webhookdelivery_change", one.id)).status_code in {302, 404}
    with every_tenant():
        assert WebhookDelivery.objects.get().state == "failed"
