"""The nine kinds of S4 3.3: what they take, where they lead, and that what they say fits what they declare."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.properties import examples
from tests.workflows.pure import contexts, values_of
from workflows.kinds.base import checker, output_problems, params_problems
from workflows.kinds.registry import kinds as every_kind
from workflows.kinds.registry import shipped as every_shipped

pytestmark = pytest.mark.unit


def _nine(found):
    """Without those that only documents of format 2 may use."""
    return {name: one for name, one in found.items() if 1 in one.formats}


def kinds():
    return _nine(every_kind())


def shipped():
    return _nine(every_shipped())


NAMES = sorted(kinds())
ASKING = [name for name in NAMES if kinds()[name].request]
ANSWERED = [name for name in NAMES if kinds()[name].answer]
INSTANT = [name for name in NAMES if kinds()[name].instant]
OUTCOMES = {
    "gate_on_consent": ("on_pass", "on_fail"),
    "require_images": ("on_pass", "on_fail"),
    "run_ai_review": ("on_complete", "on_failure"),
    "request_human_review": ("on_complete",),
    "condition": ("on_true", "on_false"),
    "emit_webhook": ("on_complete",),
    "emit_final": ("on_complete",),
    "set_case_status": ("on_complete",),
    "halt": (),
}
EFFECTS = {
    "none": {"gate_on_consent", "require_images", "condition", "halt", "request_human_review"},
    "idempotent": {"run_ai_review", "set_case_status", "emit_webhook", "emit_final"},
}
REFUSED = [
    ("gate_on_consent", {}, "/types"),
    ("gate_on_consent", {"types": []}, "/types"),
    ("gate_on_consent", {"types": ["Ai Analysis"]}, "/types/0"),
    ("gate_on_consent", {"types": ["a", "a"]}, "/types"),
    ("require_images", {"min_count": 0}, "/min_count"),
    ("require_images", {"min_count": "3"}, "/min_count"),
    ("require_images", {"min_count": 1, "image_types": ["a picture of the arm"]}, "/image_types/0"),
    ("run_ai_review", {"model": "x"}, "/model"),
    ("request_human_review", {}, "/tier"),
    ("request_human_review", {"tier": "sa_qa", "module": "yes"}, "/module"),
    ("condition", {"expr": ""}, "/expr"),
    ("emit_webhook", {}, "/event_name"),
    ("emit_webhook", {"event_name": "workflow.completed"}, "/event_name"),
    ("emit_webhook", {"event_name": "attempt.completed"}, "/event_name"),
    ("emit_webhook", {"event_name": "a", "payload_template": {"note": "some free words"}}, "/payload_template/note"),
    ("emit_final", {"include_diagnoses": 1}, "/include_diagnoses"),
    ("set_case_status", {"status": "in review by the clinic"}, "/status"),
    ("halt", {}, "/reason_code"),
    ("halt", {"reason_code": "x", "note": "n" * 281}, "/note"),
]
THOROUGH = examples(20, suppress_health_check=[HealthCheck.too_slow])


def test_the_nine_kinds_of_the_design_are_there_with_their_outcomes():
    assert {name: found.outcomes for name, found in shipped().items()} == OUTCOMES


def test_every_kind_declares_its_effect():
    assert {name: found.effect for name, found in shipped().items()} == {
        name: effect for effect, names in EFFECTS.items() for name in names
    }
    assert {name for name, found in shipped().items() if found.is_governed} == EFFECTS["idempotent"]


@pytest.mark.parametrize(("name", "params", "pointer"), REFUSED)
def test_params_that_do_not_fit_are_refused_by_place(name, params, pointer):
    assert pointer in {problem.pointer for problem in params_problems(kinds()[name], params)}


def test_a_problem_repeats_no_value():
    problems = params_problems(kinds()["set_case_status"], {"status": "amina@example.org", "amina@example.org": 1})
    assert len(problems) == 2
    assert "amina" not in repr(problems)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@THOROUGH
def test_params_from_the_schema_are_accepted(name, data):
    assert params_problems(kinds()[name], data.draw(values_of(kinds()[name].params_schema))) == []


@pytest.mark.parametrize("name", ASKING)
@given(data=st.data(), context=contexts())
@THOROUGH
def test_a_request_fits_its_own_schema(name, data, context):
    found = kinds()[name]
    params = data.draw(values_of(found.params_schema))
    assert found.request is not None
    assert checker(found.request.schema).problems(found.payload(params, context)) == []


@pytest.mark.parametrize("name", ANSWERED)
@given(data=st.data())
@THOROUGH
def test_a_completion_leads_to_a_declared_outcome_with_an_output_that_fits(name, data):
    found = kinds()[name]
    params = data.draw(values_of(found.params_schema))
    assert found.completion is not None
    answer = found.answer(params, data.draw(values_of(found.completion.schema)))
    assert answer.outcome in found.outcomes
    assert output_problems(found, answer.output) == []


@pytest.mark.parametrize("name", INSTANT)
@given(data=st.data(), context=contexts(), verdict=st.booleans())
@THOROUGH
def test_an_instant_answer_fits_as_well(name, data, context, verdict):
    found = kinds()[name]
    answer = found.instant(data.draw(values_of(found.params_schema)), context, lambda _: verdict)
    assert answer.outcome in found.outcomes
    assert output_problems(found, answer.output) == []


@pytest.mark.parametrize(
    ("name", "payload", "outcome"),
    [
        ("gate_on_consent", {"granted": True, "missing_types": []}, "on_pass"),
        ("gate_on_consent", {"granted": False, "missing_types": ["ai_analysis"]}, "on_fail"),
        ("require_images", {"count": 3, "passed": True, "image_ids": []}, "on_pass"),
        ("require_images", {"count": 1, "passed": False, "image_ids": []}, "on_fail"),
        ("run_ai_review", {"confidence": 0.1, "diagnoses": [], "raw_response_id": "r-1"}, "on_complete"),
        ("request_human_review", {"decision": "override", "reviewer_id": "r-1"}, "on_complete"),
        ("set_case_status", {"previous_status": "open", "new_status": "closed"}, "on_complete"),
    ],
)
def test_the_payload_decides_the_outcome(name, payload, outcome):
    assert kinds()[name].answer({}, payload).outcome == outcome


@pytest.mark.parametrize("result", [True, False])
def test_a_condition_goes_where_its_expression_says(result):
    answer = kinds()["condition"].instant({"expr": "x.y"}, {}, {"x.y": result}.__getitem__)
    assert (answer.outcome, answer.output) == ("on_true" if result else "on_false", {"result": result})


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("run_ai_review", {"confidence": 1.2, "diagnoses": [], "raw_response_id": "r"}),
        ("run_ai_review", {"confidence": 0.2, "diagnoses": [{"code": "x", "label": "words"}], "raw_response_id": "r"}),
        ("run_ai_review", {"confidence": 0.2, "diagnoses": []}),
        ("request_human_review", {"decision": "decline", "reviewer_id": "r"}),
        ("gate_on_consent", {"granted": "yes", "missing_types": []}),
        ("set_case_status", {"previous_status": "a", "new_status": "b", "comment": "c"}),
    ],
)
def test_an_output_that_drifted_is_refused(name, output):
    assert output_problems(kinds()[name], output)


def test_the_ai_review_is_asked_about_the_images_that_the_checks_found():
    request = kinds()["run_ai_review"].payload
    checked = {"product_id": "p", "image_ids": ["c"], "one": {"image_ids": ["b"]}, "two": {"image_ids": ["a", "b"]}}
    assert request({}, checked) == {"images": ["a", "b"], "product_id": "p"}
    assert request({}, {"product_id": "p", "image_ids": ["c"]})["images"] == ["c"]
    many = [f"{index:03}" for index in range(100)]
    assert request({}, {"product_id": "p", "one": {"image_ids": many[::-1]}})["images"] == many


def test_the_final_result_says_who_said_what_and_decides_nothing():
    context = {
        "case_id": "c",
        "org_id": "o",
        "product_id": "p",
        "definition_id": "d",
        "patient_id": "secret-ref",
        "review": {"decision": "override", "reviewer_id": "r", "diagnoses": [{"code": "C43"}]},
        "ai": {"confidence": 0.4, "diagnoses": [{"code": "D22", "rank": 1}], "raw_response_id": "x"},
    }
    payload = kinds()["emit_final"].payload({}, context)
    assert payload["final_diagnoses"] == [
        {"source": "ai", "code": "D22", "rank": 1},
        {"source": "review", "code": "C43"},
    ]
    assert set(payload["context_snapshot"]) == {"case_id", "org_id", "product_id", "ai", "review"}
    assert payload["definition_id"] == "d"


def test_the_final_result_can_leave_diagnoses_out_everywhere():
    context = {"definition_id": "d", "ai": {"confidence": 0.4, "diagnoses": [{"code": "D22"}]}}
    payload = kinds()["emit_final"].payload({"include_diagnoses": False}, context)
    assert payload == {"final_diagnoses": [], "context_snapshot": {"ai": {"confidence": 0.4}}, "definition_id": "d"}


def test_a_webhook_is_filled_from_the_context_and_what_is_missing_is_null():
    template = {
        "confidence": "{{ai.confidence}}",
        "kind": "triage",
        "in": {"a": "{{ no.such }}"},
        "list": ["{{case_id}}"],
    }
    params = {"event_name": "case.reviewed", "payload_template": template}
    context = {"case_id": "c-1", "ai": {"confidence": 0.4}}
    assert params_problems(kinds()["emit_webhook"], params) == []
    assert kinds()["emit_webhook"].payload(params, context) == {
        "event_name": "case.reviewed",
        "payload": {"confidence": 0.4, "kind": "triage", "in": {"a": None}, "list": ["c-1"]},
    }
