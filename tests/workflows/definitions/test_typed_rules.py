"""Every rule of format 2 with a document that breaks it: where it is found, and what was probably meant."""

from typing import Any

import pytest

from tests.workflows.definitions.typed import assign, block, call, document, findings, found, refund
from workflows.kinds.base import Json
from workflows.kinds.shapes import closed

pytestmark = pytest.mark.unit

NUMBER: Json = {"type": "number", "minimum": 0, "maximum": 1}
TEXT: Json = {"type": "string", "maxLength": 20}
MAYBE: Json = {"type": ["string", "null"], "maxLength": 20}
LINES: Json = {"type": "array", "maxItems": 20, "items": closed({"sku": TEXT, "count": {"type": "integer"}})}
DEEP = closed({"a": closed({"b": closed({"c": closed({"d": closed({})})})})})
INPUT = closed(
    {"cents": {"type": "integer"}, "hint": MAYBE, "lines": LINES, "due": {"type": "string", "format": "date-time"}}
)


def rules(given: Json) -> set[str]:
    return {one.rule for one in findings(given)}


def parallel(steps: Json | None = None, *, join: Any = "all", **more: Any) -> Json:
    """Two branches: `one` gives `one.a`, `two` gives `two.b`; then `after`."""
    own: Json = {
        "fork": block("parallel", "after", branches={"left": "one", "right": "two"}, join=join),
        "one": call("JOIN", a=NUMBER),
        "two": call("JOIN", b=TEXT),
        "after": assign("TERMINAL", done="true"),
    }
    return document(own | (steps or {}), **more)


def changed(given: Json, step: str, **fields: Any) -> Json:
    given["steps"][step] |= fields
    return given


# --- blocks ---


@pytest.mark.parametrize("join", ["all", "any", {"at_least": 2}])
def test_blocks_inside_each_other_have_nothing_to_find(join: Any) -> None:
    steps = {
        "one": block(
            "loop", "JOIN", body="again", **{"while": "round < 3 && coalesce(again.x, 0) > 0.5", "max_rounds": 5}
        ),
        "again": call("JOIN", x=NUMBER),
        "two": block("for_each", "JOIN", over="input.lines", body="each"),
        "each": assign("JOIN", total="item.count * input.cents", name="item.sku"),
    }
    assert found(parallel(steps, join=join, input=INPUT)) == []


def test_a_branch_does_not_lead_out_of_its_block() -> None:
    given = changed(parallel(), "two", transitions={"on_complete": "after", "on_failure": "JOIN"})
    assert ("block_structure", "/steps/two/transitions/on_complete", "JOIN") in found(given)


def test_nothing_leads_into_a_block() -> None:
    given = parallel({"first": call("fork", fails="two", x=TEXT)}, start="first")
    assert ("block_structure", "/steps/first/transitions/on_failure", "fork") in found(given)


def test_a_step_belongs_to_one_branch_only() -> None:
    given = parallel()
    given["steps"]["fork"]["params"]["branches"]["third"] = "two"
    assert ("block_structure", "/steps/fork/params/branches/third", "") in found(given)
    given = changed(parallel(), "one", transitions={"on_complete": "two", "on_failure": "JOIN"})
    assert ("block_structure", "/steps/one/transitions/on_complete", "JOIN") in found(given)


def test_the_start_step_stands_outside_of_all_blocks() -> None:
    assert "block_structure" in rules(parallel(start="two"))


def test_a_block_does_not_lie_inside_itself() -> None:
    given = document({"a": block("loop", "TERMINAL", body="a", **{"while": "round < 2", "max_rounds": 3})})
    assert "block_structure" in rules(given)
    circle = {
        "start": assign("TERMINAL", x="1"),
        "a": block("loop", "JOIN", body="b", **{"while": "round < 2", "max_rounds": 3}),
        "b": block("loop", "JOIN", body="a", **{"while": "round < 2", "max_rounds": 3}),
    }
    assert {"block_structure", "no_unreachable_steps"} <= rules(document(circle))


def test_join_is_for_branches_and_terminal_for_the_run() -> None:
    given = changed(parallel(), "after", transitions={"on_complete": "JOIN"})
    assert ("join_inside", "/steps/after/transitions/on_complete", "TERMINAL") in found(given)
    assert "terminal_reachable" in rules(given)
    given = changed(parallel(), "one", transitions={"on_complete": "JOIN", "on_failure": "TERMINAL"})
    assert ("terminal_outside", "/steps/one/transitions/on_failure", "JOIN") in found(given)
    given = changed(parallel(), "one", kind="emit_final", params={}, transitions={"on_complete": "TERMINAL"})
    assert ("terminal_outside", "/steps/one/kind", "") in found(given)


def test_every_branch_reaches_join() -> None:
    halt = {"kind": "halt", "params": {"reason_code": "adapter_failed"}}
    given = parallel({"stop": halt})
    changed(given, "two", transitions={"on_complete": "stop", "on_failure": "stop"})
    assert ("bodies_reach_join", "/steps/fork/params/branches/right", "JOIN") in found(given)
    changed(given, "two", transitions={"on_complete": "JOIN", "on_failure": "stop"})
    assert found(given) == []


def test_loops_are_written_as_loops() -> None:
    given = parallel({"back": call("one", x=TEXT)})
    changed(given, "one", transitions={"on_complete": "back", "on_failure": "JOIN"})
    assert "no_cycles" in rules(given)


def test_blocks_are_nested_four_deep_at_most() -> None:
    def nested(depth: int) -> Json:
        steps: Json = {}
        for level in range(depth):
            then = "JOIN" if level else "TERMINAL"
            steps[f"l{level}"] = block("loop", then, body=f"l{level + 1}", **{"while": "round < 2", "max_rounds": 2})
        return document(steps | {f"l{depth}": assign("JOIN", x="round")})

    assert found(nested(4)) == []
    assert rules(nested(5)) == {"blocks_bounded"}


def test_a_join_asks_for_no_more_than_there_is() -> None:
    assert ("joins_fit", "/steps/fork/params/join/at_least", "2") in found(parallel(join={"at_least": 3}))


def test_names_of_steps_and_targets() -> None:
    given = parallel()
    given["steps"]["fork"]["params"]["branches"]["left"] = "onee"
    assert ("targets_exist", "/steps/fork/params/branches/left", "one") in found(given)
    given = changed(parallel(), "after", transitions={"on_complete": "TERMINATE"})
    assert ("targets_exist", "/steps/after/transitions/on_complete", "TERMINAL") in found(given)
    for name in ("input", "item", "round"):
        assert ("step_ids_valid", f"/steps/{name}", f"{name}_step") in found(
            document({name: assign("TERMINAL", x="1")})
        )


def test_steps_inside_blocks_are_reached_through_their_block() -> None:
    given = parallel({"alone": call("JOIN", x=TEXT)})
    assert [one for one in found(given) if one[0] == "no_unreachable_steps"] == [
        ("no_unreachable_steps", "/steps/alone", "")
    ]


# --- paths ---


def reading(expression: str, *, join: Any = "all", **steps: Any) -> list[tuple[str, str]]:
    given = parallel(steps, join=join, input=INPUT, output={"x": expression})
    changed(given, "after", params={"values": {"x": expression}})
    outputs = {(rule, near) for rule, pointer, near in found(given) if pointer == "/output/x"}
    values = {(rule, near) for rule, pointer, near in found(given) if pointer == "/steps/after/params/values/x"}
    assert values == outputs
    return sorted(values)


MISSING = "expression_paths_known"


def test_after_a_join_of_all_the_outputs_of_all_branches_are_certain() -> None:
    given = parallel(
        {"stop": {"kind": "halt", "params": {"reason_code": "adapter_failed"}}}, output={"a": "one.a", "b": "two.b"}
    )
    changed(given, "fork", transitions={"on_complete": "after", "on_failure": "stop"})
    for step in ("one", "two"):  # a step that halts the run may be shared
        changed(given, step, transitions={"on_complete": "JOIN", "on_failure": "stop"})
    assert found(given) == []
    for join in ("any", {"at_least": 1}):
        given["steps"]["fork"]["params"]["join"] = join
        assert [one[:2] for one in found(given)] == [(MISSING, "/output/a"), (MISSING, "/output/b")]
    given["steps"]["fork"]["params"]["join"] = {"at_least": 2}
    assert found(given) == []


def test_after_a_failure_the_outputs_of_branches_may_be_missing() -> None:
    assert reading("one.a") == [(MISSING, "")]
    assert reading("coalesce(one.a, 0)") == []
    assert reading("fork.left.ended == 'failed'") == []
    assert reading("fork.left.ended == 'faild'") == [("expression_types_fit", "failed")]
    assert reading("fork.lft.ended == 'failed'") == [(MISSING, "fork.left")]


def test_a_block_whose_time_may_be_over_may_leave_nothing() -> None:
    given = parallel(output={"x": "fork.left.ended"})
    assert found(given) == []
    assert [one[:2] for one in found(changed(given, "fork", timeout_seconds=60))] == [(MISSING, "/output/x")]


def test_a_branch_does_not_see_the_others() -> None:
    given = parallel({"two": assign("JOIN", b="one.a")})
    assert [one[:2] for one in found(given)] == [(MISSING, "/steps/two/params/values/b")]
    assert "runs in the branch 'left' of 'fork'" in findings(given)[0].message


def each(over: str = "input.lines", *, then: str = "1", **values: str) -> Json:
    steps = {
        "all": block("for_each", "after", over=over, body="each"),
        "each": assign("JOIN", **(values or {"x": "item.count"})),
        "after": assign("TERMINAL", x=then),
    }
    return document(steps, input=INPUT)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (each(x="item.count + 1", y="item.sku"), []),
        (each(x="item.cont"), [(MISSING, "/steps/each/params/values/x", "item.count")]),
        (each(x="item.sku + 1"), [("expression_types_fit", "/steps/each/params/values/x", "")]),
        (each(x="item"), []),
        (each(x="round"), [(MISSING, "/steps/each/params/values/x", "")]),
        (each("[1, 2]", x="item * 2"), []),
        (each("['a']", x="item * 2"), [("expression_types_fit", "/steps/each/params/values/x", "")]),
        (each("input.cents"), [("expression_types_fit", "/steps/all/params/over", "")]),
        (each("input.linez"), [(MISSING, "/steps/all/params/over", "input.lines")]),
        (each(then="each.x"), [(MISSING, "/steps/after/params/values/x", "")]),
        (each(then="item.count"), [(MISSING, "/steps/after/params/values/x", "")]),
        (each(then="all.count"), []),
        (each(then="len(all.ends)"), []),
    ],
)  # fmt: skip
def test_an_item_is_seen_inside_its_body_only(given: Json, expected: list[tuple[str, str, str]]) -> None:
    assert [one for one in found(given) if one[:2] != (MISSING, "/steps/each/params/values/x") or expected] == expected


def test_a_list_to_go_through_is_bounded() -> None:
    given = each()
    given["input"]["properties"] = given["input"]["properties"] | {"lines": LINES | {"maxItems": 201}}
    assert rules(given) == {"schema_bounded", "expression_types_fit"}


def again(condition: str, *, then: str = "1", **more: Any) -> Json:
    steps = {
        "repeat": block("loop", "after", body="ask", **{"while": condition, "max_rounds": 3}) | more,
        "ask": call("JOIN", fails="give", x=NUMBER),
        "give": call("JOIN", fails="stop", y=TEXT),
        "stop": {"kind": "halt", "params": {"reason_code": "adapter_failed"}},
        "after": assign("TERMINAL", x=then),
    }
    steps["ask"]["transitions"]["on_complete"] = "give"
    return document(steps, input=INPUT)


WHILE = "/steps/repeat/params/while"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (again("round < 2 && give.y != 'done'"), []),
        (again("coalesce(ask.x, 0) < 0.5"), []),
        (again("ask.x < 0.5"), [(MISSING, WHILE, "")]),
        (again("round"), [("expression_types_fit", WHILE, "")]),
        (again("round < 'a'"), [("expression_types_fit", WHILE, "")]),
        (again("after.x == 1"), [(MISSING, WHILE, "")]),
        (again("round +"), [("expression_parses", WHILE, "")]),
        (again("true", then="give.y"), []),
        (again("true", then="repeat.rounds"), []),
        (again("true", then="round"), [(MISSING, "/steps/after/params/values/x", "")]),
        (again("true", then="give.y", timeout_seconds=9), [(MISSING, "/steps/after/params/values/x", "")]),
    ],
)  # fmt: skip
def test_a_loop_sees_its_round_and_leaves_the_last_one(given: Json, expected: list[tuple[str, str, str]]) -> None:
    assert [(rule, pointer, "") for rule, pointer, _ in found(given)] == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("input.cents * 2", []),
        ("input.cnts", [(MISSING, "input.cents")]),
        ("input.cents.x", [(MISSING, "input.cents")]),
        ("input.hint == 'a'", [("expression_types_fit", "")]),
        ("coalesce(input.hint, '') == 'a'", []),
        ("len(input.hint)", [("expression_types_fit", "coalesce(input.hint, …)")]),
        ("input.cents < 'a'", [("expression_types_fit", "")]),
        ("input.cents + input.due", [("expression_types_fit", "")]),
        ("now() < input.due", []),
        ("now() < '2026-05-04T12:00:00Z'", []),
        ("now() < 'tomorrow'", [("expression_types_fit", "")]),
        ("input.cents in [1, 2]", []),
        ("input.cents in [1, 'b']", [("expression_types_fit", "")]),
        ("input.cents in input.lines", [("expression_types_fit", "")]),
        ("!input.cents", [("expression_types_fit", "")]),
        ("sample(input.cents)", [("expression_types_fit", "")]),
        ("sample(0.5, 'a')", []),
        ("-input.due", [("expression_types_fit", "")]),
        ("input.lines == input.lines", [("expression_types_fit", "")]),
        ("coalesce(input.cents, 'a') + 1", [("expression_types_fit", "")]),
        ("case_id == 'a'", []),
        ("case_id.x", [(MISSING, "case_id")]),
        ("nothing.x", [(MISSING, "")]),
        ("after.x", [(MISSING, "")]) ,
        ("item.x", [(MISSING, "")]),
        ("input", []),
    ],
)  # fmt: skip
def test_what_an_expression_reads_is_there_and_fits(expression: str, expected: list[tuple[str, str]]) -> None:
    given = parallel(input=INPUT)
    changed(given, "after", params={"values": {"x": expression}})
    assert [(rule, near) for rule, _, near in found(given)] == expected


def test_what_is_assigned_has_the_type_of_its_expression() -> None:
    def then(expression: str) -> set[str]:
        steps = {
            "put": assign(
                "use", a="input.cents + 1", b="input.lines", c="now()", d="input.hint", e="coalesce(input.hint, 'x')"
            ),
            "use": assign("TERMINAL", x=expression),
        }
        return rules(document(steps, input=INPUT))

    for fits in ("put.a * 2", "len(put.b)", "now() > put.c", "coalesce(put.d, 'x')", "put.e == 'a'"):
        assert then(fits) == set(), fits
    for wrong in ("put.a == 'x'", "put.b + 1", "put.c + 1", "put.d == 'a'", "put.e + 1"):
        assert then(wrong) == {"expression_types_fit"}, wrong
    assert then("put.z") == {MISSING}


def test_input_has_to_be_declared() -> None:
    given = parallel(output={"x": "input.cents"})
    assert found(given) == [(MISSING, "/output/x", "")]


# --- templates ---


def hook(**template: Any) -> Json:
    sent = {"event_name": "order.done", "payload_template": template}
    steps = {
        "get": call("hook", fails="hook", ref=TEXT, maybe=MAYBE),
        "hook": {"kind": "emit_webhook", "params": sent, "transitions": {"on_complete": "TERMINAL"}},
    }
    return document(steps, input=INPUT)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ({"a": "{{input.cents}}", "b": "Order {{input.cents / 100}} EUR", "c": 3, "d": "plain words"}, []),
        ({"a": "{{coalesce(get.ref, 'none')}}", "b": ["{{input.lines}}", {"c": "{{case_id}}"}]}, []),
        ({"a": "{{get.ref}}"}, [(MISSING, "/a", "")]),
        ({"a": "x {{input.hint}}"}, [("expression_types_fit", "/a", "coalesce(input.hint, …)")]),
        ({"a": "{{input.hint}}"}, []),
        ({"a": "x {{input.lines}}"}, [("expression_types_fit", "/a", "")]),
        ({"a": "{{input.cents"}, [("expression_parses", "/a", "")]),
        ({"a": ["{{input.cents +}}"]}, [("expression_parses", "/a/0", "")]),
        ({"a": "{{input.cnts}}"}, [(MISSING, "/a", "input.cents")]),
    ],
)  # fmt: skip
def test_a_template_can_be_filled_on_every_path(template: Json, expected: list[tuple[str, str, str]]) -> None:
    base = "/steps/hook/params/payload_template"
    assert found(hook(**template)) == [(rule, base + place, near) for rule, place, near in expected]


# --- schemas and params ---


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ([], ""),
        ({"type": "string"}, ""),
        ({"type": "object", "properties": {}}, "/additionalProperties"),
        ({"type": "object", "additionalProperties": False}, "/properties"),
        (closed({"a": {"type": "string"}}), "/properties/a"),
        (closed({"a": {"type": "string", "maxLength": 2000}}), "/properties/a/maxLength"),
        (closed({"a": {"type": "string", "pattern": "^[a-z]+$"}}), "/properties/a"),
        (closed({"a": {"type": "string", "pattern": "[a-z]"}}), "/properties/a"),
        (closed({"a": {"type": "string", "pattern": "^a|b$"}}), "/properties/a"),
        (closed({"a": {"type": "string", "format": "email"}}), "/properties/a/format"),
        (closed({"a": {"type": "array", "items": TEXT}}), "/properties/a/maxItems"),
        (closed({"a": {"type": "array", "maxItems": 3}}), "/properties/a/items"),
        (closed({"a": {"$ref": "#/b"}}), "/properties/a/#0"),
        (closed({"a": {}}), "/properties/a/type"),
        (closed({"a": {"type": "text"}}), "/properties/a/type"),
        (closed({"a": {"enum": []}}), "/properties/a/enum"),
        (closed({"a": {"enum": [{}]}}), "/properties/a/enum"),
        (closed({"a b": TEXT}), "/properties/#0"),
        (closed({"a": TEXT}) | {"required": ["b"]}, "/required/0"),
        (DEEP, "/properties/a/properties/b/properties/c/properties/d"),
        (closed({"a": {"type": "string", "maxLength": 9, "pattern": "("}}), ""),
        (closed({"patient_name": TEXT}), "/properties/patient_name"),
        (closed({"comment": TEXT}), "/properties/comment"),
    ],
)  # fmt: skip
def test_an_author_s_schema_is_closed_and_bounded(schema: Any, pointer: str) -> None:
    given = parallel(input=schema)
    places = [place for rule, place, _ in found(given) if rule == "schema_bounded"]
    assert places == ["/input" + pointer]


@pytest.mark.parametrize(
    "field",
    [
        TEXT,
        MAYBE,
        {"type": "string", "pattern": "^[A-Z]{3}$"},
        {"type": "string", "pattern": "^(a|b)-[0-9*+]{1,4}$"},
        {"type": "string", "format": "date"},
        {"type": "string", "format": "uri", "maxLength": 200},
        {"enum": ["a", 1, True, None]},
        {"const": "a"},
        {"type": "number", "exclusiveMinimum": 0, "description": "An amount."},
        {"type": "integer", "multipleOf": 5, "title": "Count", "default": 5},
        {"type": "boolean"},
        LINES,
    ],
)
def test_what_a_schema_may_say(field: Json) -> None:
    assert found(parallel(input=closed({"a": field}, optional=("a",)))) == []


def test_what_a_service_returns_is_bounded_too() -> None:
    given = changed(parallel(), "one", params={**call("x")["params"], "returns": {"type": "object"}})
    assert "/steps/one/params/returns/additionalProperties" in [one[1] for one in found(given)]


def task(**changes: Any) -> Json:
    given = refund()
    given["steps"]["finance"]["params"] |= changes
    return given


def test_a_form_has_plain_fields_and_outcomes_have_names_of_their_own() -> None:
    base = "/steps/finance/params"
    form = closed(
        {
            "outcome": {"enum": ["a"]},
            "lines": LINES,
            "codes": {"type": "array", "maxItems": 3, "items": {"enum": ["a"]}},
        }
    )
    assert [one for one in found(task(form=form)) if one[0] == "tasks_fit"] == [
        ("tasks_fit", f"{base}/form/properties/outcome", "outcome_given"),
        ("tasks_fit", f"{base}/form/properties/lines", ""),
    ]
    twice = found(task(outcomes=["approve", "reject", "approve", "expired"]))
    assert {one[1] for one in twice if one[0] == "tasks_fit"} == {f"{base}/outcomes/2", f"{base}/outcomes/3"}
    assert "review_tier_exists" in rules(task(tier="finanse"))


def test_an_outcome_of_a_task_needs_a_transition_and_is_a_word_in_conditions() -> None:
    given = task(outcomes=["approve", "reject", "ask"])
    assert ("outcomes_complete", "/steps/finance/transitions", "on_ask") in found(given)
    given = refund()
    given["output"]["how"] = "coalesce(finance.outcome, 'none') == 'aprove'"
    assert found(given) == [("expression_types_fit", "/output/how", "approve")]


def test_a_reviewer_follows_a_step_with_a_person() -> None:
    def then(rule: Any) -> list[tuple[str, str, str]]:
        given = refund()
        given["steps"]["pick"] = {
            "kind": "assign_reviewer",
            "params": {"tier": "finance", "rule": rule},
            "transitions": {"on_complete": "tell"},
        }
        given["steps"]["finance"]["transitions"]["on_reject"] = "pick"
        return [one for one in found(given) if one[0] == "reviewers_exist"]

    assert then("round_robin") == then({"same_as": "finance"}) == then({"not": "finance"}) == []
    assert then({"same_as": "done"}) == [("reviewers_exist", "/steps/pick/params/rule/same_as", "")]
    assert then({"not": "small"}) == [("reviewers_exist", "/steps/pick/params/rule/not", "")]


def test_a_time_to_wait_for_is_a_timestamp() -> None:
    def until(expression: str) -> list[tuple[str, str]]:
        delay = {"kind": "delay", "params": {"until": expression}, "transitions": {"on_complete": "TERMINAL"}}
        return [(rule, near) for rule, _, near in found(document({"wait": delay}, input=INPUT))]

    for fits in ("input.due", "now()", "'2026-12-01T00:00:00Z'", "coalesce(input.due, now())"):
        assert until(fits) == [], fits
    for wrong in ("case_id", "input.cents", "'soon'"):
        assert until(wrong) == [("expression_types_fit", "")], wrong


def test_a_subflow_gives_what_another_document_says() -> None:
    sub = {
        "kind": "subflow",
        "params": {"definition_slug": "other", "input": {"a": "{{input.cents}}", "b": "{{input.x}}"}},
        "transitions": {"on_complete": "TERMINAL", "on_failure": "TERMINAL"},
    }
    given = document({"sub": sub}, input=INPUT, output={"x": "coalesce(sub.anything, 1)"})
    assert found(given) == [(MISSING, "/steps/sub/params/input/b", "")]


def test_no_person_and_no_secret_in_a_document() -> None:
    given = refund()
    given["steps"]["finance"]["params"]["title"] = "Ask amina.yusuf@example.org"
    given["output"]["paid"] = "coalesce(pay.receipt_ref, 'Mr. John Smith')"
    given["input"]["properties"]["currency"]["description"] = "Call +44 20 7946 0958"
    given["steps"]["fraud"]["params"]["send"]["order_ref"] = "for Dr. Amina Yusuf {{input.order_ref}}"
    assert {one[1] for one in found(given)} == {
        "/steps/finance/params/title",
        "/output/paid",
        "/input/properties/currency/description",
        "/steps/fraud/params/send/order_ref",
    }
    assert {one[0] for one in found(given)} == {"text_boundary"}


def test_a_document_of_format_1_is_judged_as_before() -> None:
    given = refund() | {"format": 1}
    assert "document_shape" in rules(given)
    assert "kind_exists" in rules(given)
