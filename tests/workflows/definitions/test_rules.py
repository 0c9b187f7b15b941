"""Every rule of S4 3.5 and Holdpoint's own: what it finds, where, what it proposes, and what it lets pass."""

import pytest

from tests.workflows.pure import HALT_CODES, changed, findings, rules, tenth
from workflows.definitions.rules.starters.starters import NAMES, definition_starter
from workflows.definitions.rules.validate import draft_findings
from workflows.kinds.registry import kinds

pytestmark = pytest.mark.unit

ONCE = {**kinds(), "wait_for_signal": tenth()}
SIGNAL = {
    "image_check": {"transitions": {"on_pass": "signal", "on_fail": "halt_images"}},
    "signal": {"kind": "wait_for_signal", "transitions": {"on_complete": "ai_review"}},
}


def only(document, **changes):
    (finding,) = findings(document, **changes)
    return finding


def at(document, rule, **changes):
    """(pointer, suggestion) of what this rule found."""
    return [(found.pointer, found.suggestion) for found in findings(document, **changes) if found.rule == rule]


@pytest.mark.parametrize("name", NAMES)
def test_every_starter_may_be_published(name):
    assert findings(definition_starter(name)) == []


def test_the_example_of_the_design_may_be_published():
    """S4 3.1, as it is written there."""
    steps = {
        "consent_gate": {
            "kind": "gate_on_consent",
            "params": {"types": ["ai_analysis"]},
            "timeout_seconds": 60,
            "max_retries": 0,
            "transitions": {"on_pass": "image_check", "on_fail": "halt_consent"},
        },
        "image_check": {
            "kind": "require_images",
            "params": {"min_count": 3, "image_types": ["DERMOSCOPIC", "MACROSCOPIC"]},
            "timeout_seconds": 60,
            "max_retries": 0,
            "transitions": {"on_pass": "ai_review", "on_fail": "halt_images"},
        },
        "ai_review": {
            "kind": "run_ai_review",
            "params": {},
            "timeout_seconds": 900,
            "max_retries": 3,
            "retry_backoff": "exponential",
            "transitions": {"on_complete": "branch_confidence", "on_failure": "halt_ai"},
        },
        "branch_confidence": {
            "kind": "condition",
            "expr": "ai_review.confidence < 0.7",
            "transitions": {"on_true": "customer_review", "on_false": "emit_done"},
        },
        "customer_review": {
            "kind": "request_human_review",
            "params": {"tier": "customer_clinician"},
            "timeout_seconds": 86400,
            "transitions": {"on_complete": "emit_done"},
        },
        "emit_done": {"kind": "emit_final", "transitions": {"on_complete": "TERMINAL"}},
        "halt_consent": {"kind": "halt", "params": {"reason_code": "consent_missing"}},
        "halt_images": {"kind": "halt", "params": {"reason_code": "insufficient_images"}},
        "halt_ai": {"kind": "halt", "params": {"reason_code": "ai_review_failed"}},
    }
    document = {
        "name": "AI + customer review with confidence escalation",
        "description": "Default flow for derm clinics with sub-0.7 confidence escalation to clinician.",
        "default_mode": "active",
        "workflow_timeout_seconds": 2592000,
        "start_step": "consent_gate",
        "steps": steps,
    }
    assert findings(document) == []


def test_start_step_must_exist():
    document = definition_starter("ai_only") | {"start_step": "consent_gat"}
    assert only(document).as_json() == {
        "rule": "start_step_exists",
        "pointer": "/start_step",
        "message": "start_step names 'consent_gat', and there is no such step. Did you mean 'consent_gate'?",
        "suggestion": "consent_gate",
    }


def test_targets_must_exist():
    document = changed("ai_only", ai_review={"transitions": {"on_complete": "emit_don", "on_failure": "halt_ai"}})
    assert at(document, "targets_exist") == [("/steps/ai_review/transitions/on_complete", "emit_done")]


def test_steps_must_be_reachable():
    document = changed("ai_only", lost={"kind": "halt", "params": {"reason_code": "image_quality"}})
    finding = only(document)
    assert (finding.rule, finding.pointer) == ("no_unreachable_steps", "/steps/lost")


def test_a_circle_is_named_and_the_transition_that_closes_it_is_the_place():
    document = changed(
        "ai_plus_clinician",
        customer_review={"transitions": {"on_complete": "image_check"}},
        emit_done={"kind": "emit_final"},
    )
    (finding,) = [found for found in findings(document) if found.rule == "no_cycles"]
    assert finding.pointer == "/steps/customer_review/transitions/on_complete"
    assert "image_check → ai_review → customer_review → image_check" in finding.message


def test_a_step_that_leads_to_itself_is_a_circle():
    document = changed("ai_only", ai_review={"transitions": {"on_complete": "emit_done", "on_failure": "ai_review"}})
    assert at(document, "no_cycles") == [("/steps/ai_review/transitions/on_failure", "")]


@pytest.mark.parametrize("expr", ["ai_review.confidence <", "ai_review.confidence = 0.7", "average(1)", "sample(2)"])
def test_conditions_must_parse(expr):
    finding = only(changed("ai_with_confidence_escalation", branch_confidence={"expr": expr}))
    assert (finding.rule, finding.pointer) == ("condition_parses", "/steps/branch_confidence/expr")
    assert "line 1" in finding.message


def test_a_condition_may_stand_among_its_params_but_not_twice():
    inside = changed(
        "ai_with_confidence_escalation", branch_confidence={"expr": None, "params": {"expr": "sample(0.5)"}}
    )
    assert findings(inside) == []
    inside["steps"]["branch_confidence"]["expr"] = "sample(0.5)"
    assert only(inside).rule == "expression_once"
    wrong = changed("ai_with_confidence_escalation", branch_confidence={"expr": None, "params": {"expr": "sample("}})
    assert at(wrong, "condition_parses") == [("/steps/branch_confidence/params/expr", "")]


def test_halt_reasons_must_exist_for_the_organization():
    document = changed("ai_only", halt_ai={"params": {"reason_code": "ai_review_faild"}})
    finding = only(document)
    assert (finding.rule, finding.pointer) == ("halt_reason_exists", "/steps/halt_ai/params/reason_code")
    assert finding.suggestion == "ai_review_failed"
    assert at(definition_starter("ai_only"), "halt_reason_exists", halt_codes=HALT_CODES - {"ai_review_failed"})


def test_other_scopes_are_judged_only_if_codes_are_given():
    signal = tenth(
        params_schema={
            "type": "object",
            "additionalProperties": False,
            "required": ["code"],
            "properties": {"code": {"type": "string", "maxLength": 20}},
        },
        reason_codes={"code": "step_failure"},
    )
    document = changed("ai_only", **SIGNAL)
    document["steps"]["signal"]["params"] = {"code": "lost"}
    known = {**kinds(), "wait_for_signal": signal}
    assert rules(document, kinds=known) == set()
    assert rules(document, kinds=known, step_failure_codes={"lost"}) == set()
    assert rules(document, kinds=known, step_failure_codes={"other"}) == {"step_failure_reason_exists"}


def test_review_tiers_must_exist():
    document = changed("clinician_only", customer_review={"params": {"tier": "customer_clinican"}})
    finding = only(document)
    assert (finding.rule, finding.pointer) == ("review_tier_exists", "/steps/customer_review/params/tier")
    assert finding.suggestion == "customer_clinician"
    assert findings(document, tiers={"customer_clinican"}) == []


def test_a_final_step_must_exist():
    document = changed(
        "ai_only", emit_done={"kind": "halt", "params": {"reason_code": "image_quality"}, "transitions": None}
    )
    document["steps"]["emit_done"].pop("timeout_seconds")
    assert at(document, "emit_final_reachable") == [("/steps", "emit_final")]


def test_a_final_step_must_be_reachable():
    document = changed("ai_only", ai_review={"transitions": {"on_complete": "halt_ai", "on_failure": "halt_ai"}})
    assert rules(document) == {"emit_final_reachable", "no_unreachable_steps"}
    assert at(document, "emit_final_reachable") == [("/steps/emit_done", "")]


def test_some_path_must_end_in_terminal():
    document = changed("ai_only", emit_done={"transitions": {"on_complete": "halt_ai"}})
    assert at(document, "emit_final_reachable") == [("/steps/emit_done", "TERMINAL")]


def test_a_final_step_leads_to_terminal_only():
    document = changed(
        "ai_plus_clinician",
        ai_review={"transitions": {"on_complete": "emit_done", "on_failure": "halt_ai"}},
        emit_done={"transitions": {"on_complete": "customer_review"}},
        customer_review={"transitions": {"on_complete": "TERMINAL"}},
    )
    assert at(document, "final_targets_terminal") == [("/steps/emit_done/transitions/on_complete", "TERMINAL")]
    assert rules(document) == {"final_targets_terminal"}


def test_a_step_may_not_take_longer_than_the_workflow():
    document = changed("ai_only") | {"workflow_timeout_seconds": 600}
    assert at(document, "timeout_within_workflow") == [("/steps/ai_review/timeout_seconds", "600")]
    assert rules(changed("ai_only") | {"workflow_timeout_seconds": 900}) == set()


def test_without_a_timeout_of_its_own_the_workflow_has_thirty_days():
    document = changed("ai_only", ai_review={"timeout_seconds": 30 * 24 * 3600 + 1})
    del document["workflow_timeout_seconds"]
    assert rules(document) == {"timeout_within_workflow"}


def test_effect_once_is_never_retried():
    document = changed("ai_only", **SIGNAL)
    document["steps"]["signal"]["max_retries"] = 1
    assert at(document, "effect_forbids_retries", kinds=ONCE) == [("/steps/signal/max_retries", "0")]
    document["steps"]["signal"]["max_retries"] = 0
    assert findings(document, kinds=ONCE) == []


def test_kinds_must_exist():
    document = changed("ai_only", consent_gate={"kind": "gate_on_consnt"})
    assert at(document, "kind_exists") == [("/steps/consent_gate/kind", "gate_on_consent")]


def test_params_are_judged_by_the_kind():
    document = changed("ai_only", image_check={"params": {"min_cout": 3}})
    assert at(document, "params_valid") == [
        ("/steps/image_check/params/min_count", ""),
        ("/steps/image_check/params/min_cout", "min_count"),
    ]
    missing = changed("ai_with_confidence_escalation", branch_confidence={"expr": None})
    assert at(missing, "params_valid") == [("/steps/branch_confidence/expr", "")]


def test_every_outcome_needs_a_transition_and_no_other_may_have_one():
    document = changed("ai_only", image_check={"transitions": {"on_pas": "ai_review", "on_fail": "halt_images"}})
    assert at(document, "outcomes_complete") == [
        ("/steps/image_check/transitions", "on_pass"),
        ("/steps/image_check/transitions/on_pas", "on_pass"),
    ]
    halting = changed("ai_only", halt_ai={"transitions": {"on_complete": "emit_done"}})
    assert at(halting, "outcomes_complete") == [("/steps/halt_ai/transitions/on_complete", "")]
    none = changed("ai_only", image_check={"transitions": None})
    assert len(at(none, "outcomes_complete")) == 2


PATHS = {
    "ai_revew.confidence < 0.5": "ai_review.confidence",
    "ai_review.confidance < 0.5": "ai_review.confidence",
    "ai_review == 1": "ai_review.confidence",
    "case_idd == 'x'": "case_id",
    "case_id.part == 'x'": "case_id",
    "patient_id == 'x'": "",
    "ai_review.diagnoses.code == 'x'": "ai_review.diagnoses",
    "sa_qa.decision == 'confirm'": "",
    "branch_sample.result": "branch_confidence.result",
    "emit_done.x == 1": "",
    "customer_review.decision == 'confirm'": "",
    "coalesce(customer_review.decison, 'none') == 'confirm'": "customer_review.decision",
    "coalesce(sa_qa.decision, 'none') == 'confirm'": "",
}


@pytest.mark.parametrize(("expr", "suggestion"), PATHS.items())
def test_a_condition_reads_only_what_is_there_on_every_path(expr, suggestion):
    document = changed("ai_escalation_plus_sa_sample", branch_sample={"expr": expr})
    assert at(document, "condition_paths_known") == [("/steps/branch_sample/expr", suggestion)]


@pytest.mark.parametrize(
    "expr",
    [
        "sample(0.1) && ai_review.confidence < 0.9",
        "len(ai_review.diagnoses) > 1",
        "consent_gate.granted && image_check.count >= 3",
        "branch_confidence.result",
        "coalesce(customer_review.decision, 'confirm') == 'override'",
        "case_id != org_id && product_id == product_id",
        "now() > '2026-01-01T00:00:00Z'",
    ],
)
def test_what_is_upstream_or_received_by_coalesce_may_be_read(expr):
    assert findings(changed("ai_escalation_plus_sa_sample", branch_sample={"expr": expr})) == []


def test_an_optional_field_needs_coalesce_even_where_its_step_is_certain():
    document = changed(
        "ai_plus_clinician_plus_sa_qa_sample", branch_sample={"expr": "len(customer_review.diagnoses) > 0"}
    )
    finding = only(document)
    assert (finding.rule, finding.suggestion) == ("condition_paths_known", "coalesce(customer_review.diagnoses, …)")
    document["steps"]["branch_sample"]["expr"] = "len(coalesce(customer_review.diagnoses, [])) > 0"
    assert findings(document) == []


def test_a_final_failure_leaves_no_output_behind():
    """The AI review is on every path to the branch, but on one of them it failed."""
    document = changed(
        "ai_with_confidence_escalation",
        ai_review={"transitions": {"on_complete": "branch_confidence", "on_failure": "branch_confidence"}},
    )
    del document["steps"]["halt_ai"]
    assert rules(document) == {"condition_paths_known"}
    document["steps"]["branch_confidence"]["expr"] = "coalesce(ai_review.confidence, 0) < 0.7"
    assert findings(document) == []


@pytest.mark.parametrize(
    ("expr", "suggestion"),
    [
        ("ai_review.confidence < '0.7'", ""),
        ("ai_review.confidence", ""),
        ("!image_check.count", ""),
        ("consent_gate.granted && image_check.count", ""),
        ("len(ai_review.confidence) > 1", ""),
        ("sample(consent_gate.granted)", ""),
        ("'D22' in ai_review.diagnoses", ""),
        ("ai_review.confidence in ['a', 'b']", ""),
        ("ai_review.confidence in 3", ""),
        ("ai_review.diagnoses == ai_review.diagnoses", ""),
        ("now() > 3", ""),
        ("coalesce(customer_review.decision, 'none') == 'overide'", "override"),
        ("coalesce(customer_review.decision, 'none') in ['confirm', 'overide']", "override"),
    ],
)
def test_a_condition_that_could_only_fail_is_found(expr, suggestion):
    finding = only(changed("ai_escalation_plus_sa_sample", branch_sample={"expr": expr}))
    assert (finding.rule, finding.pointer) == ("condition_types_fit", "/steps/branch_sample/expr")
    assert finding.suggestion == suggestion


def webhook(**template):
    return changed(
        "ai_with_confidence_escalation",
        customer_review={"transitions": {"on_complete": "hook"}},
        hook={
            "kind": "emit_webhook",
            "params": {"event_name": "case.seen", "payload_template": template},
            "transitions": {"on_complete": "emit_done"},
        },
    )


def test_a_template_reads_what_can_be_upstream():
    assert findings(webhook(a="{{customer_review.decision}}", b="{{case_id}}", c=3, d="plain")) == []
    assert at(webhook(a={"b": "{{ai_review.confidenc}}"}), "template_paths_known") == [
        ("/steps/hook/params/payload_template/a/b", "ai_review.confidence")
    ]
    assert at(webhook(a="{{emit_done.x}}"), "template_paths_known") == [("/steps/hook/params/payload_template/a", "")]


@pytest.mark.parametrize(
    ("change", "pointer", "suggestion"),
    [
        ({"descripton": "x"}, "/descripton", "description"),
        ({"default_mode": "passive"}, "/default_mode", ""),
        ({"workflow_timeout_seconds": "long"}, "/workflow_timeout_seconds", ""),
        ({"start_step": 1}, "/start_step", ""),
    ],
)
def test_the_shape_of_the_document(change, pointer, suggestion):
    assert (pointer, suggestion) in at(definition_starter("ai_only") | change, "document_shape")


def test_the_shape_of_a_step():
    document = changed("ai_only", ai_review={"timout_seconds": 3, "retry_backoff": "sometimes"})
    assert at(document, "document_shape") == [
        ("/steps/ai_review/retry_backoff", ""),
        ("/steps/ai_review/timout_seconds", "timeout_seconds"),
    ]
    document["steps"]["odd"] = "halt"
    assert ("/steps/odd", "") in at(document, "document_shape")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"name": ""}, "/name"),
        ({"name": "n" * 121}, "/name"),
        ({"description": "d " * 141}, "/description"),
        ({"workflow_timeout_seconds": 0}, "/workflow_timeout_seconds"),
        ({"steps": {}}, "/steps"),
    ],
)
def test_limits(change, pointer):
    assert pointer in [place for place, _ in at(definition_starter("ai_only") | change, "limits")]


def test_at_most_two_hundred_steps():
    steps = {f"s{index}": {"kind": "halt", "params": {"reason_code": "image_quality"}} for index in range(201)}
    document = {"name": "Many", "start_step": "s0", "steps": steps}
    assert [(found.rule, found.pointer) for found in findings(document)] == [("limits", "/steps")]
    del steps["s200"]
    assert "limits" not in rules(document)


def test_at_most_64_kib_and_eight_deep():
    wide = {f"s{index}": {"kind": "condition", "expr": "x" * 900, "transitions": {}} for index in range(100)}
    assert rules({"name": "Wide", "start_step": "s0", "steps": wide}) == {"limits"}
    deep = {}
    for _ in range(20):
        deep = {"x": deep}
    assert rules(definition_starter("ai_only") | {"more": deep}) == {"limits"}


def test_more_than_ten_retries_are_too_many():
    assert at(changed("ai_only", ai_review={"max_retries": 11}), "limits") == [("/steps/ai_review/max_retries", "")]


def test_integers_are_written_as_integers():
    document = changed("ai_only", ai_review={"max_retries": 3.0}, image_check={"params": {"min_count": 3.0}})
    document["workflow_timeout_seconds"] = 86400.0
    assert at(document, "integer_form") == [
        ("/workflow_timeout_seconds", ""),
        ("/steps/ai_review/max_retries", ""),
        ("/steps/image_check/params/min_count", ""),
    ]


@pytest.mark.parametrize(
    ("step_id", "suggestion"),
    [
        ("AiReview", "ai_review"),
        ("9lives", ""),
        ("a-b", ""),
        ("len", "len_step"),
        ("case_id", "case_id_step"),
        ("a" * 65, "a" * 64),
    ],
)
def test_step_ids_are_words_that_are_free(step_id, suggestion):
    document = definition_starter("ai_only")
    document["steps"][step_id] = document["steps"].pop("halt_ai")
    document["steps"]["ai_review"]["transitions"]["on_failure"] = step_id
    (finding,) = [found for found in findings(document) if found.rule == "step_ids_valid"]
    assert finding.suggestion == suggestion


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"name": "Flow of Dr. Amina Yusuf"}, "/name"),
        ({"description": "Ask amina.yusuf@example.org"}, "/description"),
        ({"name": "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk"}, "/name"),
        ({"start_step": "4111111111111111"}, "/start_step"),
        ({"name": "bell \u0007"}, "/name"),
    ],
)
def test_no_person_and_no_secret_in_a_definition(change, pointer):
    document = definition_starter("ai_only") | change
    assert pointer in [place for place, _ in at(document, "text_boundary")]
    assert pointer in [found.pointer for found in draft_findings(document, kinds=kinds())]


def test_notes_and_string_literals_are_looked_at_too():
    document = changed(
        halt_ai={"params": {"reason_code": "ai_review_failed", "note": "Call +44 20 7946 0958"}},
        branch_sample={"expr": "case_id == 'Dr. Amina Yusuf'"},
    )
    assert {place for place, _ in at(document, "text_boundary")} == {
        "/steps/halt_ai/params/note",
        "/steps/branch_sample/expr",
    }


def test_a_draft_may_be_wrong_but_not_personal():
    draft = {"name": "Begun", "steps": {"a": {"kind": "nothing", "transitions": {"x": "y"}}}}
    assert draft_findings(draft, kinds=kinds()) == []
    assert [found.rule for found in draft_findings([], kinds=kinds())] == ["document_shape"]
    assert [found.rule for found in draft_findings({"name": float("nan")}, kinds=kinds())] == ["json_safe"]


def test_a_message_repeats_no_name_that_looks_like_a_person():
    document = definition_starter("ai_only")
    document["steps"]["amina.yusuf@example.org"] = {"kind": "John Smith", "transitions": {"+44 20 7946 0958": "x y z"}}
    document["start_step"] = "Mr. John Smith"
    document["steps"]["ai_review"]["kind"] = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    told = repr(findings(document))
    assert not [word for word in ("amina", "John", "7946", "x y z", "ghp_") if word in told]


def test_all_findings_come_at_once():
    document = changed(
        consent_gate={"kind": "gate_on_consnt"},
        image_check={"params": {}, "transitions": {"on_pass": "ai_reviw", "on_fail": "halt_images"}},
        ai_review={"timeout_seconds": 2592001},
        branch_confidence={"expr": "ai_review.confidence <"},
        branch_sample={"expr": "ai_review.confidance > 0.5"},
        sa_qa={"params": {"tier": "sa_q"}},
        halt_ai={"params": {"reason_code": "ai_faild"}},
        emit_done={"transitions": {"on_complete": "branch_sample"}},
    )
    assert rules(document) == {
        "kind_exists",
        "params_valid",
        "targets_exist",
        "no_unreachable_steps",
        "no_cycles",
        "timeout_within_workflow",
        "condition_parses",
        "condition_paths_known",
        "review_tier_exists",
        "halt_reason_exists",
        "emit_final_reachable",
        "final_targets_terminal",
    }


def test_every_message_is_whole_and_every_place_a_pointer():
    documents = [changed(branch_sample={"expr": expr}) for expr in PATHS] + [
        definition_starter("ai_only") | {"start_step": "x", "more": 1, "name": ""},
        changed("ai_only", ai_review={"kind": "zzz", "x": 1}, image_check={"transitions": {"zzz": "zzz"}}),
    ]
    for document in documents:
        for finding in findings(document):
            assert finding.message[-1] in ".?", finding
            assert finding.pointer == "" or finding.pointer.startswith("/")
