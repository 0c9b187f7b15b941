"""Bound rows as bytes, and the comparison with rows: pure, over random items."""

from dataclasses import dataclass
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.record.rules.compare import MISSING, RETURNED, RowKey, items_compare
from governance.record.rules.items import FORGOTTEN, GONE, SALTED, BoundItem, BoundRowsInvalid, items_read, leaf_data

pytestmark = pytest.mark.unit
ids = st.binary(min_size=16, max_size=16)
digests = st.binary(min_size=32, max_size=32).filter(lambda one: one != GONE)
salts = st.none() | st.binary(min_size=16, max_size=16).filter(lambda one: one != FORGOTTEN)
items = st.builds(
    BoundItem, st.integers(0, 1023), st.integers(0, 31), ids, st.integers(1, 2**32 - 1), digests | st.just(GONE), salts
)


@dataclass(frozen=True)
class Row:
    version: int
    digest: bytes


def packed(rows: list[BoundItem]) -> tuple[bytes, bytes]:
    out, beside = pack(">q", 1), b""
    for row in rows:
        code = row.number | row.shape << 10 | (SALTED if row.salt is not None else 0)
        out += pack(">H16sI32s", code, row.row_id, row.version, row.digest)
        beside += row.salt or b""
    return out, beside


@given(st.lists(items, max_size=20))
def test_what_is_packed_is_read_again(rows: list[BoundItem]) -> None:
    assert list(items_read(*packed(rows))) == rows


@given(st.lists(items, min_size=1, max_size=5), st.data())
def test_cut_bytes_are_refused(rows: list[BoundItem], data: st.DataObject) -> None:
    whole, beside = packed(rows)
    cut = data.draw(st.integers(0, len(whole) - 1).filter(lambda size: size < 8 or (size - 8) % 54))
    with pytest.raises(BoundRowsInvalid):
        list(items_read(whole[:cut], beside))
    with pytest.raises(BoundRowsInvalid):
        list(items_read(whole, beside + b"x"))


@given(items.filter(lambda one: not one.deleted))
def test_a_row_equals_its_newest_item_or_is_named(item: BoundItem) -> None:
    key, salt = RowKey(item.number, item.row_id), item.salt or b""
    same = items_compare([item], {key: {salt: Row(item.version, item.digest)}})
    assert (same.faults, same.current) == ([], {item.number: 1})
    assert items_compare([item], {key: {salt: Row(item.version + 1, GONE)}}).faults == []
    changed = items_compare([item], {key: {salt: Row(item.version, bytes(31) + b"x")}})
    older = items_compare([item], {key: {salt: Row(item.version - 1, item.digest)}})
    assert [len(one.faults) for one in (changed, older)] == [1, 1]
    gone = items_compare([item], {})
    assert [fault.what for fault in gone.unexplained()] == [MISSING]


@given(items.filter(lambda one: not one.deleted))
def test_a_deletion_explains_a_missing_row_and_nothing_else(item: BoundItem) -> None:
    end = BoundItem(item.number, item.shape, item.row_id, item.version + 1, GONE, item.salt)
    assert items_compare([item, end], {}).unexplained() == []
    earlier = BoundItem(item.number, item.shape, item.row_id, item.version, GONE, item.salt)
    assert len(items_compare([item, earlier], {}).unexplained()) == 1
    there = {RowKey(item.number, item.row_id): {item.salt or b"": Row(item.version, item.digest)}}
    assert RETURNED in [fault.what for fault in items_compare([item, end], there).faults]


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80), st.binary(max_size=80))
def test_a_leaf_covers_every_byte_of_its_rows(entry: bytes, one: bytes, other: bytes) -> None:
    assert (leaf_data(entry, one) == leaf_data(entry, other)) == (one == other)
    assert leaf_data(entry, None) == entry
