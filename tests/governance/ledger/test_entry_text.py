"""The fast way to an entry's hash gives the same as the one that defines it."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.ledger.rules.entry import EntryText, entry_hash_of_text
from tests.governance.ledger.entry_reference import EntryHeader, entry_hash

pytestmark = pytest.mark.unit
NAMES = ("action", "subject_type", "actor_kind", "actor_ref", "reason_code", "request_id", "trace_id")
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
MOMENTS = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(9999, 1, 1))  # noqa: DTZ001


@given(
    ids=st.tuples(st.uuids(), st.none() | st.uuids(), st.uuids()),
    texts=st.tuples(*[TEXTS] * 7),
    at=MOMENTS,
    digest=st.binary(min_size=32, max_size=32),
    moves=st.just((1, ())) | st.tuples(st.just(2), st.lists(TEXTS, max_size=4).map(tuple)),
)
def test_both_ways_give_one_hash(
    ids: tuple[UUID, UUID | None, UUID],
    texts: tuple[str, ...],
    at: datetime,
    digest: bytes,
    moves: tuple[int, tuple[str, ...]],
) -> None:
    own, organization, subject = ids
    shared: dict[str, Any] = dict(zip(NAMES, texts, strict=True))
    shared |= {"format": moves[0], "earlier": moves[1]}
    header = EntryHeader(id=own, organization_id=organization, subject_id=subject, at=at.replace(tzinfo=UTC), **shared)
    shared["earlier"] = moves[1] or None
    text = EntryText(
        id=str(own),
        organization_id=str(organization) if organization else None,
        subject_id=str(subject),
        at=at.strftime("%Y-%m-%dT%H:%M:%S.%f+00:00"),
        **shared,
    )
    assert entry_hash_of_text(text, payload_sha256=digest) == entry_hash(header=header, payload_sha256=digest)
