"""A decision that stands in a frame is put together again bit by bit, and there are few frames for many decisions."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.enforcement.rules import decision_document, evaluate, storable_request
from governance.enforcement.rules.frames import Framed, frame, framed_environment, framed_request
from governance.enforcement.services import frame_sha256
from governance.ledger.rules.entry import canonical_bytes, canonical_sha256
from tests.governance.enforcement.generators import REQUEST_CHANGES, WORSE
from tests.governance.enforcement.support import REMOVE, changed, environment, request

pytestmark = pytest.mark.unit


def framed(made: dict[str, Any], world: dict[str, Any]) -> tuple[Framed | None, dict[str, Any], Any, list[Any]]:
    asked, surroundings = changed(request(), made), environment(world)
    decision = evaluate(asked, surroundings)
    facts = {**surroundings.facts, "failures": dict(decision.failures)}
    stored, results = storable_request(asked, decision), decision_document(decision)["results"]
    return frame(decision, request=stored, facts=facts, results=results), stored, facts, results


def put_together(found: Framed, at: str) -> bytes:
    """From JSON, like everything that comes from the database."""
    common, values = json.loads(canonical_bytes(found.frame)), json.loads(json.dumps(found.values))
    return canonical_bytes([framed_request(common, values), framed_environment(common, at=at), common["results"]])


@given(REQUEST_CHANGES, st.sampled_from([{}, *WORSE]))
def test_what_stands_in_a_frame_comes_out_as_it_was(made: dict[str, Any], world: dict[str, Any]) -> None:
    found, stored, facts, results = framed(made, world)
    if found is not None:
        assert put_together(found, facts["at"]) == canonical_bytes([stored, facts, results])


@pytest.mark.parametrize(
    "made",
    [
        {},
        {"action.fields": REMOVE},
        {"action.fields": []},
        {"action.payload_ref": REMOVE, "action.payload_sha256": REMOVE},
        {"action.payload_ref": None},
        {"action.target_ref": None},
        {"metadata": {}},
        {"metadata.priority": 2.0},
        {"metadata.priority": 9},  # held
    ],
)
def test_every_way_of_leaving_something_out_is_kept(made: dict[str, Any]) -> None:
    found, stored, facts, results = framed(made, {})
    assert found is not None
    assert put_together(found, facts["at"]) == canonical_bytes([stored, facts, results])


@pytest.mark.parametrize(
    ("made", "world"),
    [
        ({"action.operation": "ticket.close"}, {}),
        ({"action.target_ref": "Jane Doe"}, {}),
        ({"envelope": 3}, {}),
        ({}, {"facts.contract_state": "suspended"}),
        ({}, {"facts.failures": {"policy": "timeout"}}),
    ],
)
def test_a_denial_stands_in_no_frame(made: dict[str, Any], world: dict[str, Any]) -> None:
    assert framed(made, world)[0] is None


def test_requests_that_differ_in_what_callers_write_share_one_frame() -> None:
    addresses = set()
    for number in range(50):
        made = {
            "envelope.idempotency_key": f"key-number-{number}",
            "envelope.request_trace_id": f"4bf92f3577b34da6a3ce929d0e0e47{number:02x}",
            "envelope.patient_context_ref": f"ctx-{number}",
            "action.operation": f"ticket.update-{number}",
            "action.target_ref": f"ticket/{number}",
            "action.fields": [f"field_{number}"],
            "metadata.ticket": f"TKT-{number}",
        }
        found, *_ = framed(made, {"facts.at": f"2026-11-16T09:30:{number:02d}Z"})
        assert found is not None
        addresses.add(frame_sha256(found.frame))
    assert len(addresses) == 1


def test_the_address_that_is_remembered_is_the_address() -> None:
    for made in ({}, {"metadata.priority": 9}, {"action.fields": REMOVE}, {}):
        found, *_ = framed(made, {})
        assert found is not None
        assert frame_sha256(found.frame) == canonical_sha256(found.frame)


def test_values_that_do_not_fit_the_frame_are_given_back_as_they_are() -> None:
    found, *_ = framed({}, {})
    assert found is not None
    for altered in ([], found.values[:-1], {"action": {}}, None, "x"):
        assert framed_request(found.frame, altered) == altered
