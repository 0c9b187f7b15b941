"""How the database words a definition does not count as a difference."""

import pytest

from governance.record.rules.manifest import definition_settled


@pytest.mark.unit
def test_a_definition_is_the_same_after_a_dump_was_restored() -> None:
    written = "CHECK (((state)::text = ANY ((ARRAY['a'::character varying, 'it''s'::character varying])::text[])))"
    restored = (
        "CHECK (((state)::text = ANY (ARRAY[('a'::character varying)::text, ('it''s'::character varying)::text])))"
    )
    other = restored.replace("it''s", "b")
    assert definition_settled(written) == definition_settled(restored) != definition_settled(other)
