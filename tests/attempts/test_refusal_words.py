"""A refusal names field, rule and remedy, in the same words everywhere, and repeats no value."""

from typing import Any

import pytest

from governance.contracts.rules.documents import ENVELOPE_FIELDS, default_documents
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import ALLOW, open_contract

MARK = "zx81marker"


def words_of(cast: Cast, attempt_id: str) -> tuple[str, list[dict[str, str]], str]:
    """What `/explain` says, with its errors, and what `/decision` says."""
    api = cast.api("attempts:create")
    obstacle = api.get(f"/api/v1/attempts/{attempt_id}/explain").json()["obstacles"][0]
    decided = api.get(f"/api/v1/attempts/{attempt_id}/decision").json()
    denied = [row["explanation"] for row in decided["evaluators"] if row["verdict"] == "deny"]
    return obstacle["detail"], obstacle["facts"]["errors"], denied[0]


def test_a_field_outside_the_allow_list_names_who_can_add_it(cast: Cast) -> None:
    open_contract(cast, rules=ALLOW)
    answer = post(cast.api("attempts:create"), body(metadata={"amount": MARK}))
    assert answer.status_code == 422
    message = "`amount` is not in this contract's allow-list; the privacy owner can add it."
    expected = {
        "pointer": "/metadata/amount",
        "message": message,
        "rule": "not_in_schema",
        "remedy": "The privacy owner can add it.",
    }
    assert answer.json()["errors"] == [expected]
    explained, errors, decided = words_of(cast, answer.json()["attempt_id"])
    assert errors == [expected]
    assert message in explained
    assert explained == decided
    assert MARK not in answer.content.decode() + explained


def test_an_incomplete_envelope_names_the_missing_fields(cast: Cast) -> None:
    documents = default_documents()
    documents["attempt_identity_envelope"]["required"] = list(ENVELOPE_FIELDS)
    open_contract(cast, rules=ALLOW, documents=documents)
    payload = body()
    del payload["patient_context_ref"]
    answer = post(cast.api("attempts:create"), payload)
    assert (answer.status_code, answer.json()["reason_code"]) == (403, "envelope_incomplete")
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["rule"]) == ("/patient_context_ref", "missing")
    assert error["remedy"] == "Send it in the body."
    explained, errors, decided = words_of(cast, answer.json()["attempt_id"])
    assert errors == [error]
    assert error["message"] in explained
    assert explained == decided


def test_a_connector_of_another_kind_is_named(cast: Cast) -> None:
    open_contract(cast, rules=ALLOW)
    answer = post(cast.api("attempts:create"), body(action={"connector": MARK}))
    assert answer.json()["reason_code"] == "effect_mismatch"
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["rule"]) == ("/action/connector", "mismatched")
    assert MARK not in answer.content.decode()


def nested_schema(levels: int) -> dict[str, Any]:
    """The schema of metadata that is nested this deep."""
    inner: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {"n": {"type": "integer"}}}
    for _ in range(levels - 1):
        inner = {"type": "object", "additionalProperties": False, "properties": {"a": inner}}
    return inner


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"n": 1}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [2, 7])
def test_a_schema_that_is_as_deep_as_metadata_may_be_is_written_through_the_api(cast: Cast, levels: int) -> None:
    boundary = default_documents()["metadata_boundary"] | {"schema": nested_schema(levels), "max_depth": levels}
    contract = open_contract(cast, rules=ALLOW, documents={"metadata_boundary": boundary})
    api = cast.api("governance:write", "governance:read")
    draft = api.post(f"/api/v1/contracts/{contract.id}/new-version").json()
    answer = api.patch(
        f"/api/v1/contracts/{draft['id']}", {"documents": {"metadata_boundary": boundary}}, format="json"
    )
    assert answer.status_code == 200, answer.content
    assert answer.json()["documents"]["metadata_boundary"] == boundary
    asked = post(cast.api("attempts:create"), body(metadata=nested(levels)))
    assert asked.status_code == 201, asked.content
    deeper = post(cast.api("attempts:create"), body(metadata=nested(levels + 1)), key="key-00000002")
    assert deeper.status_code == (422 if levels < 7 else 400)


def test_elsewhere_a_body_is_at_most_eight_levels_deep(cast: Cast) -> None:
    answer = cast.api("governance:write").post("/api/v1/policies", {"slug": "a", "rules": nested(9)}, format="json")
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (400, "body-too-deep")
    with every_tenant():
        contract = open_contract(cast, rules=ALLOW)
    document = {"documents": {"metadata_boundary": nested(40)}}
    answer = cast.api("governance:write").patch(f"/api/v1/contracts/{contract.id}", document, format="json")
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (400, "body-too-deep")
