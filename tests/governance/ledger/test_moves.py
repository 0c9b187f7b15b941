"""Moves joined into one entry come out again as they went in, and the entry's hash covers each of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.ledger.models import LedgerEntry
from governance.ledger.rules.entry import (
    AS_BEFORE,
    FORMATS,
    EntryText,
    entry_hash_of_text,
    facts_joined,
    may_join,
    payload_hash,
)
from governance.ledger.rules.moves import Move, moves_of
from governance.ledger.services import ledger_entry_build
from reasoncodes.base.actors import Actor, ActorKind
from sdk import holdpoint_verify as verifier
from tests.governance.ledger.entry_reference import EntryHeader, entry_hash

pytestmark = pytest.mark.unit
AT = datetime(2026, 11, 16, 12, tzinfo=UTC)
ACTIONS = ["attempt.received", "attempt.deduplicated", "attempt.approved", "attempt.leased", "workflow.advanced"]
# Few names and values, so that moves repeat each other's facts; 1, 1.0 and True are equal for Python.
VALUES = st.sampled_from(["a" * 64, "b", "", 0, 1, True, False, None, 1.5, [1], ["a"], {"x": 1}])
FACTS = st.dictionaries(st.sampled_from(["digest", "fence", "owner", "moves", "attempt"]), VALUES, max_size=4)
SUBJECTS = [UUID(int=number) for number in range(3)]
ACTORS = [Actor(ActorKind.SERVICE, UUID(int=7)), Actor(ActorKind.SERVICE, UUID(int=8)), Actor(ActorKind.SYSTEM)]
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "action": st.sampled_from([*ACTIONS, "organization.changed"]),
            "subject_id": st.sampled_from(SUBJECTS),
            "actor": st.sampled_from(ACTORS),
            "reason_code": st.sampled_from(["", "", "", "policy_denied"]),
            "payload": FACTS,
        }
    ),
    max_size=8,
)


def exact(value: Any) -> str:
    """Also of the same types."""
    return repr(value)


def built(row: dict[str, Any]) -> LedgerEntry:
    return ledger_entry_build(organization_id=None, subject_type="attempt", at=AT, **row)


def row(actor: Actor) -> dict[str, Any]:
    return {"action": ACTIONS[0], "subject_id": SUBJECTS[0], "actor": actor, "payload": {}}


def header_of(entry: LedgerEntry, **changes: Any) -> EntryHeader:
    return EntryHeader(**{name: getattr(entry, name) for name in EntryHeader.__slots__} | changes)


def document_of(entry: LedgerEntry) -> dict[str, Any]:
    """As a bundle contains it."""
    header = {name: str(getattr(entry, name)) for name in verifier.HEADER if name not in ("organization", "at")}
    shown = {"organization": None, "at": entry.at.isoformat(timespec="microseconds"), "payload": entry.payload}
    hashes = {"payload_sha256": entry.payload_sha256.hex(), "sha256": entry.sha256.hex()}
    return header | shown | hashes | {"format": FORMATS[entry.format], "earlier": entry.earlier or []}


@given(st.lists(st.tuples(st.sampled_from(ACTIONS), FACTS), min_size=2, max_size=6), st.sampled_from(["", "denied"]))
def test_moves_that_are_joined_and_expanded_are_the_same_in_the_same_order(
    told: list[tuple[str, dict[str, Any]]], code: str
) -> None:
    actions, facts = zip(*told, strict=True)
    *earlier, last = actions
    found = moves_of(action=last, reason_code=code, earlier=earlier, payload=facts_joined(facts))
    codes = [""] * len(earlier) + [code]
    assert [(move.action, move.reason_code) for move in found] == list(zip(actions, codes, strict=True))
    assert [exact(sorted((move.facts or {}).items())) for move in found] == [
        exact(sorted(one.items())) for one in facts
    ]


@given(ROWS)
def test_the_entries_of_a_statement_tell_what_single_entries_would(rows: list[dict[str, Any]]) -> None:
    entries = LedgerEntry.before_insert([built(row) for row in rows])
    for subject in SUBJECTS:
        mine = [row for row in rows if row["subject_id"] == subject]
        told = [move for entry in entries if entry.subject_id == subject for move in entry.moves]
        assert [(move.action, move.reason_code) for move in told] == [
            (row["action"], row["reason_code"]) for row in mine
        ]
        assert [exact(sorted((move.facts or {}).items())) for move in told] == [
            exact(sorted(row["payload"].items())) for row in mine
        ]


@given(ROWS)
def test_there_are_as_few_entries_as_subjects_actors_and_reasons_allow(rows: list[dict[str, Any]]) -> None:
    entries = LedgerEntry.before_insert([built(row) for row in rows])
    expected = sum(_runs([row for row in rows if row["subject_id"] == subject]) for subject in SUBJECTS)
    assert len(entries) == expected
    assert len({entry.id for entry in entries}) == len(entries)


def _runs(rows: Sequence[dict[str, Any]]) -> int:
    """One entry per actor in a row; a reason code ends an entry, and some actions stand alone."""
    count = 0
    for _, group in groupby(rows, key=lambda row: row["actor"]):
        closed = True
        for row in group:
            count += closed or not may_join(row["action"])
            closed = bool(row["reason_code"]) or not may_join(row["action"])
    return count


def test_moves_of_two_actors_or_of_two_moments_are_never_one_entry() -> None:
    rows = [built(row(actor)) for actor in ACTORS]
    assert len(LedgerEntry.before_insert(rows)) == 3
    rows = [built(row(ACTORS[0])) for _ in range(2)]
    rows[1].at = AT.replace(hour=13)
    assert len(LedgerEntry.before_insert(rows)) == 2


@given(ROWS)
def test_the_hash_is_that_of_the_canonical_text_here_and_in_the_offline_verifier(rows: list[dict[str, Any]]) -> None:
    for entry in LedgerEntry.before_insert([built(row) for row in rows]):
        hashed = payload_hash(payload=entry.payload, nonce=entry.nonce)
        assert entry.payload_sha256 == hashed == verifier.payload_sha256(entry.payload, entry.nonce)
        assert entry.sha256 == entry_hash(header=header_of(entry), payload_sha256=hashed)
        assert entry.sha256 == verifier.entry_sha256(document_of(entry))
        expanded = [
            Move(one["action"], one["reason_code"], one["payload"]) for one in verifier.entry_moves(document_of(entry))
        ]
        assert exact(expanded) == exact(entry.moves)


@given(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=4), st.data())
def test_the_hash_covers_every_move(earlier: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(earlier) - 1))
    left_out, changed = [*earlier], [*earlier]
    del left_out[place]
    changed[place] = data.draw(st.sampled_from([one for one in ACTIONS if one != earlier[place]]))
    lists = [earlier, left_out, changed, [*earlier, ACTIONS[0]], [*reversed(earlier)]]
    different = {tuple(one) for one in lists}
    assert len({hash_with(2, [*one]) for one in different}) == len(different)


@given(st.lists(FACTS, min_size=2, max_size=4), st.data())
def test_the_payload_hash_covers_the_facts_of_every_move(facts: list[dict[str, Any]], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(facts) - 1))
    other = [*facts[:place], {**facts[place], "owner": "somebody else"}, *facts[place + 1 :]]
    one, two = (payload_hash(payload=facts_joined(told), nonce=b"n" * 16) for told in (facts, other))
    assert one != two


def hash_with(number: int, earlier: list[str] | None) -> bytes:
    header = dict.fromkeys(EntryText._fields, "x") | {"format": number, "earlier": earlier}
    return entry_hash_of_text(EntryText(**header), payload_sha256=b"")  # type: ignore[arg-type]


def test_moves_cannot_be_written_into_an_entry_of_the_first_format() -> None:
    with pytest.raises(ValueError, match="known format"):
        hash_with(1, ["attempt.received"])
    with pytest.raises(ValueError, match="known format"):
        hash_with(3, None)
    assert hash_with(1, None) != hash_with(2, None)


def test_after_an_erasure_the_moves_have_names_and_no_facts() -> None:
    found = moves_of(action="attempt.approved", reason_code="", earlier=["attempt.received"], payload=None)
    assert found == [Move("attempt.received", "", None), Move("attempt.approved", "", None)]


def test_a_fact_cannot_have_the_name_that_stands_for_repeated_facts() -> None:
    with pytest.raises(ValueError, match=AS_BEFORE):
        facts_joined([{AS_BEFORE: []}, {}])


def test_a_repeated_fact_is_said_once() -> None:
    told = facts_joined([{"digest": "d"}, {}, {"fence": 1, "digest": "d"}, {"fence": 1}])
    assert told == {"moves": [{"digest": "d"}, {}, {"fence": 1, AS_BEFORE: ["digest"]}, {AS_BEFORE: ["fence"]}]}
