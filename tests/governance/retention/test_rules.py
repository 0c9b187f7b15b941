"""What may be erased, as a pure rule: whatever the facts, a hold wins, and nothing unknown passes."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.retention.rules import BLOCKERS, Hold, RetentionSubject, blocker, blockers_counted, covers, kept_until
from governance.retention.states import HoldScope

pytestmark = pytest.mark.unit
NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
IDS = [UUID(int=number) for number in range(1, 4)]
REFERENCES = ["ctx-1", "ctx-2", f"attempt/{IDS[0]}", f"workflow-instance/{IDS[1]}"]
moments = st.integers(0, 40 * 365 * 24).map(lambda hours: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(hours=hours))
subjects = st.builds(
    RetentionSubject,
    kind=st.sampled_from(["attempt", "run", "person"]),
    id=st.sampled_from(IDS),
    created_at=moments,
    last_activity_at=moments,
    retention_until=st.none() | moments,
    finished=st.booleans(),
    unresolved=st.booleans(),
    contract=st.sampled_from(["", "one", "two"]),
    references=st.frozensets(st.sampled_from(REFERENCES)),
)
holds = st.builds(
    Hold,
    scope=st.sampled_from([one.value for one in HoldScope]),
    target=st.sampled_from([*map(str, IDS), "one", "ctx-1"]),
)


@given(subjects, st.lists(holds, max_size=3))
def test_only_what_is_finished_resolved_over_and_free_may_be_erased(
    subject: RetentionSubject, active: list[Hold]
) -> None:
    free = blocker(subject, holds=active, at=NOW) == ""
    until = kept_until(subject)
    assert free == (
        not any(covers(hold, subject) for hold in active)
        and not subject.unresolved
        and subject.finished
        and until is not None
        and until <= NOW
    )


@given(subjects)
def test_a_hold_on_the_organization_beats_everything(subject: RetentionSubject) -> None:
    assert blocker(subject, holds=[Hold("organization", "")], at=NOW) == "legal_hold"


@given(subjects, st.lists(holds, max_size=3), holds)
def test_one_more_hold_never_frees_anything(subject: RetentionSubject, active: list[Hold], more: Hold) -> None:
    before = blocker(subject, holds=active, at=NOW)
    after = blocker(subject, holds=[*active, more], at=NOW)
    assert after in {before, "legal_hold"}


@given(subjects)
def test_the_stamp_is_never_shortened_and_moves_with_the_last_activity(subject: RetentionSubject) -> None:
    until = kept_until(subject)
    if subject.retention_until is None:
        assert until is None
    else:
        assert until is not None
        assert until >= subject.retention_until
        assert until - subject.retention_until >= subject.last_activity_at - subject.created_at


@given(st.lists(subjects, max_size=8), st.lists(holds, max_size=2))
def test_counting_loses_nobody(found: list[RetentionSubject], active: list[Hold]) -> None:
    free, counted = blockers_counted(found, holds=active, at=NOW)
    assert len(free) + sum(counted.values()) == len(found)
    assert list(counted) == [code for code in BLOCKERS if code in counted]


@pytest.mark.parametrize(
    ("scope", "target", "kind", "expected"),
    [
        ("contract", "one", "attempt", True),
        ("contract", "two", "attempt", False),
        ("context", "ctx-1", "attempt", True),
        ("context", "ctx-2", "attempt", False),
        ("attempt", str(IDS[0]), "attempt", True),
        ("attempt", str(IDS[0]), "run", True),  # the run that opened it
        ("attempt", str(IDS[2]), "attempt", False),
        ("run", str(IDS[1]), "attempt", True),  # an attempt of the run
        ("run", str(IDS[0]), "run", True),
        ("run", str(IDS[0]), "attempt", False),
        ("person", "ctx-2", "attempt", False),
    ],
)
def test_what_a_hold_covers(scope: str, target: str, kind: str, expected: bool) -> None:
    references = frozenset({"ctx-1", f"workflow-instance/{IDS[1]}", f"attempt/{IDS[0]}"})
    subject = RetentionSubject(kind, IDS[0], NOW, NOW, NOW, True, False, contract="one", references=references)
    assert covers(Hold(scope, target), subject) is expected


def test_unknown_retention_is_kept_and_the_last_second_counts() -> None:
    end = NOW - timedelta(days=1)
    facts = {"kind": "attempt", "id": IDS[0], "created_at": end, "last_activity_at": end}
    assert (
        blocker(RetentionSubject(**facts, retention_until=None, finished=True, unresolved=False), holds=[], at=NOW)
        != ""
    )  # type: ignore[arg-type]
    over = RetentionSubject(**facts, retention_until=NOW, finished=True, unresolved=False)  # type: ignore[arg-type]
    assert blocker(over, holds=[], at=NOW) == ""
    assert blocker(over, holds=[], at=NOW - timedelta(microseconds=1)) == "retention_not_over"
