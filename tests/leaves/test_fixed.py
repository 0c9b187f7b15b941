"""Settings with one possible value, and entries that no document may leave out: anything else is refused."""

from copy import deepcopy
from typing import Any

import pytest

from governance.contracts.rules.documents import default_documents, validate_document, validate_documents
from governance.contracts.rules.documents.areas.attempt_identity_envelope import FIELDS_NEVER_OPTIONAL
from governance.contracts.rules.documents.areas.failure_quarantine import TRIGGERS_OF_UNKNOWN_OUTCOME
from tests.leaves.walk import Leaf, leaves

pytestmark = pytest.mark.unit

FIXED = [leaf for leaf in leaves() if leaf.fixed]


def another(value: Any) -> Any:
    return value[:-1] if isinstance(value, list) else not value if isinstance(value, bool) else f"{value}x"


@pytest.mark.parametrize("leaf", FIXED, ids=str)
def test_a_fixed_setting_has_no_other_value(leaf: Leaf) -> None:
    document = deepcopy(default_documents()[leaf.area])
    *above, last = leaf.path.split(".")
    holder = document
    for part in above:
        holder = holder[part]
    holder[last] = 2 if holder[last] == 1 else another(holder[last])
    (problem,) = validate_document(leaf.area, document)
    assert problem.pointer == "/" + leaf.path.replace(".", "/")


@pytest.mark.parametrize("field", FIELDS_NEVER_OPTIONAL)
def test_what_holdpoint_fills_in_itself_cannot_be_left_out(field: str) -> None:
    document = default_documents()["attempt_identity_envelope"]
    document["required"].remove(field)
    found = validate_document("attempt_identity_envelope", document)
    assert {problem.rule for problem in found} >= {"identity_field_dropped"}


def test_the_envelope_and_the_key_policy_say_the_same_about_the_key() -> None:
    documents = default_documents()
    documents["attempt_identity_envelope"]["required"].remove("idempotency_key")
    found = validate_documents(documents, effect="once")
    assert [problem.rule for problem in found] == ["key_requirement_mismatch"]


def test_the_header_of_a_required_key_is_required() -> None:
    document = default_documents()["idempotency_key_policy"] | {"required_headers": []}
    found = validate_document("idempotency_key_policy", document)
    assert [problem.rule for problem in found] == ["key_header_mismatch"]


def test_an_unknown_outcome_is_always_a_category() -> None:
    document = default_documents()["failure_quarantine"]
    document["categories"].remove("outcome_unknown")
    found = validate_document("failure_quarantine", document)
    assert "unknown_outcome_hidden" in {problem.rule for problem in found}


@pytest.mark.parametrize("trigger", TRIGGERS_OF_UNKNOWN_OUTCOME)
def test_a_failure_of_which_nobody_knows_the_outcome_has_no_other_category(trigger: str) -> None:
    document = default_documents()["failure_quarantine"]
    for row in document["triggers"]:
        if row["on"] == trigger:
            row["category"] = "adapter_failure"
    found = validate_document("failure_quarantine", document)
    assert [problem.rule for problem in found] == ["unknown_outcome_hidden"]
