"""The picture: nothing overlaps, every line arrives, and it is the same every time."""

import itertools
import json
import random
import xml.etree.ElementTree as ET

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.properties import examples
from tests.workflows.pure import changed
from workflows.definitions.rules.picture import HEIGHT, LINE_WIDTH, MARGIN, ROW_GAP, layout
from workflows.definitions.rules.starters.starters import NAMES, definition_starter
from workflows.definitions.rules.svg import picture_in_words, svg, text_width
from workflows.kinds.registry import kinds
from workflows.runs.states import StepStatus

pytestmark = pytest.mark.unit

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def documents(draw, *, circles=False):
    """Steps that lead forward to any later one, or to the end; with circles also backward."""
    count = draw(st.integers(1, 14))
    names = [f"step_{index}" for index in range(count)]
    steps = {}
    for index, name in enumerate(names):
        kind = kinds()[draw(st.sampled_from(sorted(kinds())))]
        targets = names if circles else names[index + 1 :]
        choice = st.sampled_from([*targets, "TERMINAL"])
        steps[name] = {"kind": kind.name, "transitions": {outcome: draw(choice) for outcome in kind.outcomes}}
    return {"start_step": names[0], "steps": steps}


def overlap(one, other):
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def check(picture):
    for one, other in itertools.combinations(picture.boxes, 2):
        assert not overlap(one, other), (one, other)
    for box in picture.boxes:
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= picture.width
        assert box.y + box.height <= picture.height
    boxes = {box.id: box for box in picture.boxes}
    for line in picture.lines:
        assert all(0 <= x <= picture.width and 0 <= y <= picture.height for x, y in line.points)
        if not line.back:
            assert line.points[0][1] == boxes[line.source].y + HEIGHT
            assert line.points[-1] == (boxes[line.target].middle, boxes[line.target].y)
    return boxes


@given(documents())
@examples(60, suppress_health_check=[HealthCheck.too_slow])
def test_no_boxes_overlap_and_every_line_arrives(document):
    boxes = check(layout(document))
    for line in layout(document).lines:
        assert boxes[line.source].row < boxes[line.target].row


@given(documents())
@examples(40, suppress_health_check=[HealthCheck.too_slow])
def test_long_lines_go_round_the_boxes_between(document):
    picture = layout(document)
    for line in picture.lines:
        for x, y in line.points[1:-1]:
            row = [box for box in picture.boxes if box.y <= y <= box.y + box.height]
            assert all(not box.x - LINE_WIDTH / 2 < x < box.x + box.width + LINE_WIDTH / 2 for box in row)


@given(documents(circles=True))
@examples(40, suppress_health_check=[HealthCheck.too_slow])
def test_drafts_that_go_in_circles_have_a_picture_too(document):
    picture = layout(document)
    check(picture)
    assert {box.id for box in picture.boxes} >= set(document["steps"])
    assert len(picture.lines) == sum(len(step["transitions"]) for step in document["steps"].values())


@given(documents(circles=True), st.randoms(use_true_random=False))
@examples(25, suppress_health_check=[HealthCheck.too_slow])
def test_the_order_of_keys_changes_nothing(document, shuffler):
    mixed = _shuffled(document, shuffler)
    assert layout(mixed) == layout(document)
    assert svg(layout(mixed), title="t") == svg(layout(document), title="t")


def _shuffled(value, shuffler):
    if not isinstance(value, dict):
        return value
    items = [(key, _shuffled(item, shuffler)) for key, item in value.items()]
    shuffler.shuffle(items)
    return dict(items)


@pytest.mark.parametrize("name", NAMES)
def test_a_starters_main_way_is_one_straight_column(name):
    picture = layout(definition_starter(name))
    boxes = check(picture)
    assert boxes["consent_gate"].row == 0
    assert boxes["TERMINAL"].row == len(picture.rows) - 1
    main = [box for box in picture.boxes if box.role not in ("halt",)]
    assert len({box.middle for box in main}) == 1
    assert all(boxes[halt].x > boxes["consent_gate"].x for halt in boxes if halt.startswith("halt_"))


def test_lines_that_would_cross_are_untangled():
    """In the order of a walk c stands before d, and a→d would cross b→c."""
    steps = {
        "s": {"kind": "condition", "transitions": {"on_true": "a", "on_false": "b"}},
        "a": {"kind": "condition", "transitions": {"on_true": "c", "on_false": "d"}},
        "b": {"kind": "set_case_status", "transitions": {"on_complete": "c"}},
        "c": {"kind": "halt"},
        "d": {"kind": "halt"},
    }
    boxes = {box.id: box for box in layout({"start_step": "s", "steps": steps}).boxes}
    assert (boxes["a"].x < boxes["b"].x) == (boxes["d"].x < boxes["c"].x)


def test_lines_to_the_same_step_share_their_way():
    picture = layout(_large(30))
    check(picture)
    halting = [line for line in picture.lines if line.target == "halt_all" and len(line.points) > 4]
    assert len({line.points[-3:-1] for line in halting}) == 1


def test_two_hundred_steps_have_a_picture():
    picture = layout(_large(199))
    check(picture)
    assert picture.height == 200 * (HEIGHT + ROW_GAP) - ROW_GAP + 2 * MARGIN


def _large(count):
    chosen = random.Random(7)
    steps = {"halt_all": {"kind": "halt", "params": {"reason_code": "image_quality"}}}
    for index in range(count):
        later = [f"s{other}" for other in range(index + 1, min(index + 8, count))] or ["TERMINAL"]
        steps[f"s{index}"] = {
            "kind": "run_ai_review",
            "transitions": {"on_complete": later[0], "on_failure": "halt_all"},
        }
        if index % 5 == 0:
            steps[f"s{index}"] = {
                "kind": "condition",
                "expr": "sample(0.5)",
                "transitions": {"on_true": later[0], "on_false": chosen.choice(later)},
            }
    return {"start_step": "s0", "steps": steps}


def test_roles_and_details_come_from_the_kinds():
    boxes = {box.id: box for box in layout(definition_starter("ai_escalation_plus_sa_sample")).boxes}
    assert {name: (box.role, box.detail) for name, box in boxes.items()} == {
        "consent_gate": ("step", ""),
        "image_check": ("step", ""),
        "ai_review": ("step", ""),
        "branch_confidence": ("branch", "ai_review.confidence < 0.7"),
        "customer_review": ("human", "customer_clinician"),
        "branch_sample": ("branch", "sample(0.1)"),
        "sa_qa": ("human", "sa_qa"),
        "emit_done": ("final", ""),
        "TERMINAL": ("terminal", ""),
        "halt_consent": ("halt", "consent_missing"),
        "halt_images": ("halt", "insufficient_images"),
        "halt_ai": ("halt", "ai_review_failed"),
    }


def test_what_does_not_exist_is_drawn_as_missing_and_what_is_not_reached_is_marked():
    document = changed("ai_only", ai_review={"transitions": {"on_complete": "nowhere"}}, odd={"kind": "none_such"})
    boxes = {box.id: box for box in layout(document).boxes}
    assert (boxes["nowhere"].role, boxes["nowhere"].title) == ("missing", "no such step")
    assert (boxes["odd"].role, boxes["odd"].title) == ("missing", "unknown kind")
    assert not boxes["odd"].reachable
    assert not boxes["emit_done"].reachable
    assert boxes["nowhere"].reachable


def test_a_picture_is_json_too():
    told = json.loads(json.dumps(layout(definition_starter("ai_only")).as_json()))
    assert told["layers"][0] == ["consent_gate"]
    assert {"id", "kind", "x", "y"} <= set(told["nodes"][0])
    assert told["edges"][0]["outcome"] == "on_pass"


def drawn(document=None, **options):
    text = svg(layout(document or definition_starter("ai_escalation_plus_sa_sample")), title="Triage", **options)
    return text, ET.fromstring(text)  # noqa: S314  # our own text


def test_the_drawing_passes_a_strict_policy_and_is_told_to_those_who_do_not_see_it():
    text, root = drawn(statuses={"ai_review": "failed"})
    assert root.get("role") == "img"
    ids = root.get("aria-labelledby").split()
    assert [element.get("id") for element in (root.find(f"{SVG}title"), root.find(f"{SVG}desc"))] == ids
    assert "ai_review, AI review, failed, on_complete to branch_confidence" in root.find(f"{SVG}desc").text
    names = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in names if name == "style" or name.startswith("on") or name in ("fill", "stroke")}
    assert not list(root.iter(f"{SVG}style")) + list(root.iter(f"{SVG}script"))
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_every_step_has_the_classes_of_its_kind_and_state():
    _, root = drawn(statuses={"consent_gate": "completed", "customer_review": "waiting_approval"})
    classes = {
        node.get("data-step"): node.get("class").split() for node in root.iter(f"{SVG}g") if node.get("data-step")
    }
    assert classes["consent_gate"] == ["wf-node", "wf-role-step", "wf-kind-gate_on_consent", "wf-status-completed"]
    assert classes["customer_review"][-1] == "wf-status-waiting_approval"
    assert not [name for name in classes["sa_qa"] if name.startswith("wf-status")]
    assert "wf-live" in root.get("class")
    assert "wf-live" not in drawn()[1].get("class")


@pytest.mark.parametrize("status", list(StepStatus))
def test_every_state_has_a_sign_and_words_besides_its_colour(status):
    _, root = drawn(statuses={"ai_review": status.value})
    node = next(node for node in root.iter(f"{SVG}g") if node.get("data-step") == "ai_review")
    assert [part for part in node.iter(f"{SVG}path") if part.get("class") == "wf-sign-line"]
    assert status.value.replace("_", " ") in node.find(f"{SVG}title").text


def test_every_transition_is_labelled_with_its_outcome_and_has_an_arrow():
    document = definition_starter("ai_escalation_plus_sa_sample")
    _, root = drawn(document)
    outcomes = sorted(outcome for step in document["steps"].values() for outcome in step.get("transitions", {}))
    assert sorted(text.text for text in root.iter(f"{SVG}text") if "wf-outcome" in text.get("class")) == outcomes
    assert len([path for path in root.iter(f"{SVG}path") if path.get("class") == "wf-arrow"]) == len(outcomes)


def test_the_way_that_an_instance_took_is_marked():
    _, root = drawn(statuses={}, taken={("branch_confidence", "on_false")})
    marked = [text.text for text in root.iter(f"{SVG}text") if "wf-taken" in text.get("class")]
    assert marked == ["on_false"]


def test_steps_can_be_links_and_two_pictures_keep_their_ids_apart():
    text, root = drawn(links={"ai_review": "#step-ai_review"}, prefix="before")
    assert [link.get("href") for link in root.iter(f"{SVG}a")] == ["#step-ai_review"]
    assert 'id="before-title"' in text


def test_names_are_escaped_and_long_ones_cut_but_told_whole():
    name = "<b>" + "x" * 40
    text, root = drawn({"start_step": name, "steps": {name: {"kind": "halt", "params": {"reason_code": '"&<'}}}})
    assert "<b>" not in text
    assert root.find(f"{SVG}g/{SVG}title").text.startswith(name)
    shown = next(element.text for element in root.iter(f"{SVG}text"))
    assert shown.endswith("…")
    assert len(shown) < 30


def test_nothing_has_an_empty_picture():
    picture = layout({})
    assert picture.boxes == ()
    assert picture_in_words(picture) == "."
    assert svg(picture, title="Empty").startswith("<svg")


NAMED = ["customer_clinician_second_opinion", "WWWWWWWWMMMMMMMM@@@@", "a" * 64, "gate", "病历复核步骤" * 4]


def thirty():
    """Thirty steps of every kind, branches every third step, long names and long conditions."""
    names = [f"{NAMED[number % len(NAMED)]}_{number}" for number in range(30)]
    order = sorted(kinds())
    steps = {}
    for number, name in enumerate(names):
        kind = kinds()[order[number % len(order)]]
        later = names[number + 1 : number + 6] or ["TERMINAL"]
        ways = {outcome: later[place % len(later)] for place, outcome in enumerate(kind.outcomes)}
        steps[name] = {"kind": kind.name, "transitions": ways}
        if kind.expressions:
            steps[name]["expr"] = "coalesce(ai_review.confidence, 0) < 0.7 and case.priority == 'urgent'"
        if kind.human_tier:
            steps[name]["params"] = {kind.human_tier: "reviewers_of_the_second_line"}
    return {"start_step": names[0], "steps": steps}


def test_thirty_steps_neither_overlap_nor_spill_over():
    picture = layout(thirty())
    boxes = check(picture)
    assert len(picture.boxes) >= 30
    _, root = drawn(thirty(), statuses=dict.fromkeys(boxes, "completed"))
    for node in (node for node in root.iter(f"{SVG}g") if node.get("data-step")):
        box = boxes[node.get("data-step")]
        for line in node.iter(f"{SVG}text"):
            size = 13 * 1.08 if line.get("class") == "wf-id" else 11.5
            assert text_width(line.text, size=size) <= box.width - 16, line.text
            assert int(line.get("x")) == box.middle


def test_labels_at_thirty_steps_stand_between_the_rows():
    picture = layout(thirty())
    for line in (line for line in picture.lines if line.source != line.target):
        _, y = line.label
        above = [box for box in picture.boxes if box.y < y < box.y + box.height]
        assert not above, (line.outcome, above)


def test_where_a_run_is_now_can_be_jumped_to():
    text, root = drawn(statuses={"consent_gate": "completed", "image_check": "in_progress", "ai_review": "pending"})
    (now,) = [node for node in root.iter(f"{SVG}g") if node.get("id") == "wf-now"]
    assert now.find(f"{SVG}g").get("data-step") == "image_check"
    assert 'id="wf-now"' not in drawn()[0]
    assert text.count("-now") == 1
