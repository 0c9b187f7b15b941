"""Whatever is submitted, findings come back and nothing is raised."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from governance.ledger.rules.entry import canonical_bytes
from tests.properties import examples
from tests.workflows.pure import JSON, SCALARS, findings
from workflows.definitions.rules.diff import changes_in_words, diff, patched
from workflows.definitions.rules.document import read_definition
from workflows.definitions.rules.picture import layout
from workflows.definitions.rules.starters.starters import NAMES, definition_starter
from workflows.definitions.rules.svg import svg
from workflows.definitions.rules.validate import draft_findings
from workflows.kinds.registry import kinds

pytestmark = pytest.mark.unit

NAMED = st.sampled_from(["a", "b", "c", "TERMINAL", "Ä", "", "case_id", "x.y", "in"])
KINDS = st.sampled_from([*kinds(), "other", ""])
EXPRESSIONS = st.sampled_from(
    ["a.confidence < 1", "b.granted", "coalesce(c.decision, 'x') == 'confirm'", "((", "a", "sample(1)"]
)
PARAMS = st.dictionaries(
    st.sampled_from(["types", "min_count", "tier", "expr", "event_name", "payload_template", "status", "reason_code"]),
    SCALARS | EXPRESSIONS | st.lists(NAMED, max_size=3) | st.dictionaries(NAMED, st.just("{{a.b}}"), max_size=2),
    max_size=3,
)
STEPS = st.fixed_dictionaries(
    {"kind": KINDS | SCALARS},
    optional={
        "params": PARAMS | SCALARS,
        "expr": EXPRESSIONS | SCALARS,
        "transitions": st.dictionaries(
            st.sampled_from(["on_pass", "on_true", "on_complete", "ö"]), NAMED | SCALARS, max_size=3
        )
        | SCALARS,
        "timeout_seconds": SCALARS,
        "max_retries": SCALARS,
        "retry_backoff": SCALARS,
        "more": SCALARS,
    },
)
ODD = st.fixed_dictionaries(
    {},
    optional={
        "name": SCALARS,
        "description": SCALARS,
        "default_mode": SCALARS,
        "workflow_timeout_seconds": SCALARS,
        "start_step": NAMED | SCALARS,
        "steps": st.dictionaries(NAMED, STEPS | SCALARS, max_size=5) | SCALARS,
        "more": JSON,
    },
)
FUZZ = examples(80, suppress_health_check=[HealthCheck.too_slow])


class Unknown:
    """Not a JSON value."""


@given(JSON)
@FUZZ
def test_no_json_value_makes_it_raise_and_none_may_be_published(value):
    assert findings(value)


@given(ODD)
@FUZZ
def test_no_document_makes_it_raise(document):
    found = findings(document)
    assert found == findings(document)
    assert all(finding.message and finding.rule for finding in found)
    draft_findings(document, kinds=kinds())
    svg(layout(document), title="any")


@given(st.sampled_from(NAMES), st.data())
@FUZZ
def test_a_starter_with_one_thing_broken_gives_findings_or_can_be_read_and_hashed(name, data):
    document = definition_starter(name)
    step = document["steps"][data.draw(st.sampled_from(sorted(document["steps"])))]
    step[data.draw(st.sampled_from(sorted(step)))] = data.draw(SCALARS | PARAMS | EXPRESSIONS)
    if not findings(document):
        assert set(read_definition(document, definition_id="d").steps) == set(document["steps"])
        assert canonical_bytes(document)


@given(ODD, ODD)
@FUZZ
def test_any_two_documents_can_be_compared_and_the_difference_applied(before, after):
    changes = diff(before, after)
    assert not diff(patched(before, changes), after)
    assert len(changes_in_words(changes)) == len(changes)


@pytest.mark.parametrize(
    "value",
    [None, 1, "text", [], {}, {1: 2}, {"steps": {1: {}}}, {"name": Unknown()}, {"steps": {"a": {"kind": {}}}}, b"x"],
)
def test_what_no_json_reader_gives_is_refused_as_well(value):
    assert findings(value)


def test_a_document_that_holds_itself_is_too_deep():
    document = definition_starter("ai_only")
    document["steps"]["more"] = document
    assert [finding.rule for finding in findings(document)] == ["limits"]
    wide: list = []
    wide.extend([wide, wide])
    assert [finding.rule for finding in findings({"steps": wide})] == ["limits"]
