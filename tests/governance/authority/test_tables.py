"""The tables of acts and of forbidden roles in the docs are those of the code, and every act has a handler."""

from pathlib import Path

import pytest

from governance.authority.hooks import kinds_registered
from governance.authority.rules import ACTS
from governance.people.rules.combinations import FORBIDDEN

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "authority.md").read_text()


@pytest.mark.unit
def test_the_docs_name_every_act_that_needs_two_people() -> None:
    rows = [f"| {rule.title} (`{rule.kind}`) | {rule.why} | {rule.takes_away} |" for rule in ACTS.values()]
    assert "\n".join(rows) in TEXT


@pytest.mark.unit
def test_the_docs_name_every_forbidden_pair() -> None:
    rows = [f"| `{rule.one}` and `{rule.other}` | one person {rule.why} |" for rule in FORBIDDEN]
    assert "\n".join(rows) in TEXT


@pytest.mark.unit
def test_every_act_of_the_table_has_a_handler() -> None:
    assert kinds_registered() == set(ACTS)
