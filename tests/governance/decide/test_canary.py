"""Marked values through every field, header and path; then nothing of them is in the database, the logs, Valkey, the
metrics or an answer (law 6)."""

import io
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from governance.contracts.rules.documents import default_documents
from tests.cast import Cast
from tests.governance.decide.canary import TRACES, VALUES, everything_logged, places, traces_in
from tests.governance.decide.support import INTAKE, RATIONALE
from tests.governance.support import everything_stored
from tests.governed import ALLOW, make_contract, make_policy, open_contract

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "key-00000001"


@pytest.fixture(autouse=True)
def nothing_left(transactional_db: None) -> Iterator[None]:
    """Whatever a test below sends: afterwards none of it is found anywhere."""
    with everything_logged() as logged:
        yield
        search(logged)


def search(logged: io.StringIO) -> None:
    found = {place: traces_in(text) for place, text in places(logged).items()}
    assert found == {"database": [], "log": [], "valkey": [], "metrics": []}


def patient(cast: Cast) -> Any:
    """A key that is not suspended after five refusals, because every refusal here is meant."""
    return cast.api("attempts:create")


@pytest.fixture
def contract(cast: Cast) -> Any:
    documents = default_documents()
    documents["throttles_and_misuse"]["misuse"]["strikes"] = 100
    for row in documents["throttles_and_misuse"]["limits"]:
        row["limit"] = 10_000
    return open_contract(cast, documents=documents)


def body(**changes: Any) -> dict[str, Any]:
    action = {
        "connector": "external",
        "operation": "case.close",
        "target_ref": "case-0001",
        "risk_tier": "low",
        "payload_ref": "payload-0001",
        "payload_sha256": "ab" * 32,
        "fields": ["status"],
    } | changes.pop("action", {})
    return {"patient_context_ref": "ctx-1", "runtime_mode": "shadow", "action": action, "metadata": {}} | changes


def post(client: Any, payload: Any, url: str = INTAKE, key: str = KEY, **headers: Any) -> Any:
    answer = client.post(url, payload, format="json", HTTP_IDEMPOTENCY_KEY=key, **headers)
    assert traces_in(answer.content.decode()) == []
    assert not [name for name, value in answer.headers.items() if traces_in(value)]
    return answer


BODIES = {
    "patient_context_ref": lambda v: body(patient_context_ref=v),
    "runtime_mode": lambda v: body(runtime_mode=v),
    **{
        name: lambda v, name=name: body(action={name: v})
        for name in ("connector", "operation", "target_ref", "risk_tier", "payload_ref", "payload_sha256")
    },
    "fields": lambda v: body(action={"fields": ["status", v]}),
    "unknown_action_field": lambda v: body(action={v: "x"}),
    "unknown_field": lambda v: body() | {v: "x"},
    "action": lambda v: body() | {"action": v},
    "metadata": lambda v: body(metadata={"source": v}),
    "metadata_key": lambda v: body(metadata={v: "x"}),
    "metadata_nested": lambda v: body(metadata={"source": {"list": ["ok", {"deep": v}]}}),
    "whole_body": lambda v: v,
}


def test_no_field_of_an_intake_body_lets_anything_in(cast: Cast, contract: Any) -> None:
    for value in VALUES.values():
        caller = patient(cast)
        for field, make in BODIES.items():
            answer = post(caller, make(value))
            assert answer.status_code in {400, 422}, (field, answer.status_code, answer.content)
        raw = caller.post(INTAKE, value.encode(), content_type="application/json", HTTP_IDEMPOTENCY_KEY=KEY)
        assert (raw.status_code, traces_in(raw.content.decode())) == (400, [])
        plain = caller.post(INTAKE, value.encode(), content_type="text/plain", HTTP_IDEMPOTENCY_KEY=KEY)
        assert (plain.status_code, traces_in(plain.content.decode())) == (415, [])


HEADERS = ["TRACEPARENT", "USER_AGENT", "ACCEPT", "COOKIE", "REFERER", "PREFER", "X_FORWARDED_FOR", "ORIGIN"]


def test_no_header_lets_anything_in(cast: Cast, contract: Any) -> None:
    caller = patient(cast)
    for value in VALUES.values():
        line = " ".join(value.split())
        for number, name in enumerate(HEADERS):
            sent = f"sessionid={quote(line)}; name={line}" if name == "COOKIE" else line
            post(caller, body(), key=f"key-0000000{number}", **{f"HTTP_{name}": sent})
            caller.get("/api/v1/contracts", **{f"HTTP_{name}": sent})
        for scheme in ("Bearer ", "Basic ", ""):
            for url in (INTAKE, "/api/v1/contracts"):
                answer = APIClient().post(url, body(), format="json", HTTP_AUTHORIZATION=scheme + line)
                assert (answer.status_code, traces_in(answer.content.decode())) == (401, [])
        host = caller.get("/api/v1/contracts", HTTP_HOST=line)
        assert traces_in(host.content.decode()) == []
        media = caller.post(INTAKE, b"{}", content_type=line, HTTP_IDEMPOTENCY_KEY=KEY)
        assert traces_in(media.content.decode()) == []


def test_a_request_id_that_is_no_identifier_is_replaced(cast: Cast, contract: Any) -> None:
    caller = patient(cast)
    for value in VALUES.values():
        answer = post(caller, body(), HTTP_X_REQUEST_ID=" ".join(value.split()))
        assert answer.status_code in {200, 201}  # the same attempt again after the first


@pytest.mark.parametrize("charset", ["token", "visible_ascii"])
def test_an_idempotency_key_that_says_too_much_is_refused(cast: Cast, charset: str) -> None:
    documents = default_documents()
    documents["idempotency_key_policy"]["key"]["charset"] = charset
    documents["throttles_and_misuse"]["misuse"]["strikes"] = 100
    open_contract(cast, documents=documents)
    caller = patient(cast)
    for value in [*VALUES.values(), "4539148803436467", "dob-1961-07-23"]:
        answer = post(caller, body(), key=" ".join(value.split()))
        assert answer.status_code == 400, value
        assert answer.json()["type"].endswith("/idempotency-key-invalid")


def test_no_path_and_no_query_lets_anything_in(cast: Cast, contract: Any) -> None:
    caller, operator = patient(cast), cast.session(cast.operator)
    for value in VALUES.values():
        text = quote(value, safe="")
        for url in (
            f"/api/v1/execution/{text}/1/attempts",
            f"/api/v1/execution/close-case/{text}/attempts",
            f"{INTAKE}?name={text}",
            f"/api/v1/execution/{text}/{text}/attempts?{text}={text}",
        ):
            post(caller, body(), url=url)
        for url in (
            f"/api/v1/contracts?slug={text}",
            f"/api/v1/contracts?{text}=1",
            f"/api/v1/contracts?cursor={text}",
            f"/api/v1/contracts?page_size={text}",
            f"/api/v1/contracts?org_id={text}",
            f"/api/v1/contracts/{text}",
            f"/api/v1/violations?kind={text}",
            f"/api/v1/ledger/entries?action={text}",
            f"/api/v1/contracts/{contract.id}/readiness/{text}/{text}",
            f"/problems/{text}",
            f"/{text}",
        ):
            for answer in (operator.get(url), operator.post(url, {})):
                # A page's own address is in its links; it goes back to whoever sent it and nowhere else.
                if not url.startswith("/api/v1/contracts?slug="):
                    assert traces_in(answer.content.decode()) == [], url


def documents_with(value: str) -> list[dict[str, Any]]:
    """The documents of a contract that have room for words, with the value in it."""
    defaults = default_documents()
    boundary = defaults["metadata_boundary"]
    named = boundary["schema"] | {"properties": {"source": {"type": "string", "enum": [value]}}}
    keyed = boundary["schema"] | {"properties": {value: {"type": "string"}}}
    return [
        {"metadata_boundary": boundary | {"schema": named}},
        {"metadata_boundary": boundary | {"schema": keyed}},
        {"metadata_boundary": boundary | {value: 1}},
        {"failure_quarantine": defaults["failure_quarantine"] | {"escalation_owner": value}},
        {"failure_quarantine": defaults["failure_quarantine"] | {"compensation_contract": value}},
        {"retry_and_replay": {value: value}},
    ]


STOP = {"scope": "contract", "target": "close-case", "reason_code": "operator_shutdown", "note": "Incident 17"}


def writes(value: str, *, contract: Any, draft: Any, policy: Any, shutdown: str) -> list[tuple[str, str, Any]]:
    """Everything that people write, with the value in one place of it."""
    new = {"slug": "new", "title": "New", "review_owner": "sa_qa", "policy_slug": "standard"}
    rule = {"slug": "new", "title": "New", "rules": ALLOW}
    literal = f"metadata.source == {json.dumps(value)}"
    return [
        *[("post", "contracts", new | {field: value}) for field in ("slug", "title", "review_owner", "policy_slug")],
        *[("patch", f"contracts/{draft.id}", {field: value}) for field in ("title", "review_owner", "policy_slug")],
        *[("patch", f"contracts/{draft.id}", {"documents": found}) for found in documents_with(value)],
        ("post", "contracts", new | {value: value}),
        ("post", f"contracts/{contract.id}/suspend", {"reason_code": value}),
        ("post", f"contracts/{contract.id}/suspend", {"reason_code": "incident_response", "note": value}),
        ("post", f"contracts/{draft.id}/retire", {"reason_code": "incident_response", "note": value}),
        *[("post", "policies", rule | {field: value}) for field in ("slug", "title")],
        *[
            ("patch", f"policies/{policy.id}", {"rules": [ALLOW[0] | change]})
            for change in ({"when": literal}, {"when": value}, {"id": value}, {"tier": value}, {value: 1})
        ],
        *[("patch", f"policies/{policy.id}", {"rules": [ALLOW[0] | {"description": value}]})],
        *[
            ("post", f"contracts/{draft.id}/readiness/metadata_boundary/approve", RATIONALE | {field: value})
            for field in ("rationale", "evidence_ref")
        ],
        *[("post", "shutdowns", STOP | {field: value}) for field in ("scope", "target", "reason_code", "note")],
        ("post", f"shutdowns/{shutdown}/release", {"note": value}),
    ]


def test_nothing_that_people_write_lets_anything_in(cast: Cast, contract: Any) -> None:
    operator, owner = cast.session(cast.operator), cast.session(cast.person("priya", "owner:privacy"))
    draft, policy = make_contract(cast, slug="draft"), make_policy(cast, slug="draft", publish=False)
    shutdown = operator.post("/api/v1/shutdowns", STOP | {"drill": True}).json()["id"]
    for value in VALUES.values():
        for method, path, written in writes(value, contract=contract, draft=draft, policy=policy, shutdown=shutdown):
            client = owner if "readiness" in path else operator
            answer = getattr(client, method)(f"/api/v1/{path}", written)
            assert answer.status_code in {400, 422}, (path, written, answer.content)
            assert traces_in(answer.content.decode()) == [], path


def test_the_search_would_find_what_is_there(cast: Cast, contract: Any) -> None:
    """A canary that cannot sing proves nothing: an ordinary reference is found where it belongs."""
    assert post(patient(cast), body(patient_context_ref="ctx-giraffe")).status_code == 201
    assert "ctx-giraffe" in everything_stored()
    assert all(trace not in "ctx-giraffe" for trace in TRACES)
