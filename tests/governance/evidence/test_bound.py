"""Bundles with bound rows: a row is covered by its digest under the signed head, and any change is found."""

import copy
import json
import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governance.record.rules import items as record_items
from governance.record.rules.tables import BOUND
from sdk import holdpoint_verify as verifier
from tests.governance.evidence import synthetic
from tests.governance.evidence.synthetic import (
    AT,
    NAME,
    PERSON,
    PUBLIC,
    content,
    entry,
    proven,
    rewritten,
    verifier_key,
)

pytestmark = pytest.mark.unit
VOTE, REVIEW = str(UUID(int=2**100 + 5)), str(UUID(int=2**100 + 6))
NUMBER = BOUND["attempts_reviewvote"].number
SALT = bytes(range(16))
ROW = {
    "id": VOTE,
    "review_id": REVIEW,
    "voter_ref": PERSON,
    "on_behalf_of_ref": "",
    "verdict": "approve",
    "tier": "",
    "reason_code": "",
    "result_ref": "",
    "result_sha256": "",
    "action_digest": "ab" * 32,
    "at": AT,
    "note_sha256": "",
    "signature": None,
}
COLUMNS = {name: value for name, value in ROW.items() if name not in {"note_sha256", "signature"}}
# As PostgreSQL writes it: no zeros at the end of a fraction, and a column that the bundle does not show.
IMAGE = json.dumps(COLUMNS | {"at": "2026-11-16T12:00:00+00:00", "note_id": None})
SAID = {
    "vote": VOTE,
    "verdict": "approve",
    "action_digest": "ab" * 32,
    "on_behalf_of": None,
    "note_sha256": None,
}


SUBJECT = {"kind": "attempt", "id": synthetic.SUBJECT}
SYSTEM = {"actor_kind": "system", "actor_ref": "", "subject_type": "evidence_bundle", "subject_id": synthetic.BUNDLE}


def part(image: str = IMAGE, *, version: int = 1, salt: bytes = SALT) -> str:
    item = struct.pack(
        ">H16sI32s", NUMBER | record_items.SALTED, UUID(VOTE).bytes, version, verifier.row_digest(image, salt)
    )
    return (struct.pack(">q", 1_700_000_000_000_000) + item).hex()


def entries() -> list[dict[str, Any]]:
    received = entry(1, "attempt.received", {"digest": "ab"})
    voted = entry(2, "review.voted", SAID, subject_type="review", subject_id=REVIEW)
    return [received, voted]


def carrier(rows: str) -> dict[str, Any]:
    """The first entry of the transaction, which is about something else."""
    found = entry(3, "workflow.advanced", {"number": 4}, subject_id=str(UUID(int=77)), rows=[rows])
    return found | {"payload": None, "nonce": None, "rows": [rows]}


def bundle(row: dict[str, Any] | None = None, *, image: str = IMAGE, rows: str = "", salt: bytes = SALT) -> bytes:
    """Anchored and sealed as it is: nothing but the comparison can find what is wrong with it."""
    carries = carrier(rows or part())
    shown = {"table": NUMBER, "name": "attempts_reviewvote", "id": VOTE, "version": 1, "entry": carries["id"]}
    files = content(votes=verifier.canonical([row or ROW]))
    files[verifier.IMAGES] = verifier.canonical([shown | {"salt": salt.hex(), "image": image}])
    said = verifier.anchor_payload(files, entries(), organization="clinic", subject=SUBJECT)
    listed, checkpoint = proven([*entries(), entry(99, verifier.ANCHOR, said, **SYSTEM), carries])
    key = verifier_key(NAME, synthetic.KEY.public_key())
    return verifier.bundle_write(files, listed[:-1], checkpoint, key, listed[-1:])


def faults(data: bytes) -> list[str]:
    return verifier.verify(data, public_key=PUBLIC).faults


def test_a_bundle_with_bound_rows_is_authentic_and_ties_every_column() -> None:
    report = verifier.verify(bundle(), public_key=PUBLIC)
    assert (report.result, report.faults) == ("authentic", [])
    assert report.ties["votes"] == {"rows": 1, "bound": 1, "not_tied": {}}


def test_the_verifier_reads_bound_rows_as_the_record_does() -> None:
    raw = bytes.fromhex(part())
    (mine,), (theirs,) = verifier.bound_rows(raw)[1], list(record_items.items_read(raw, SALT))
    assert (mine.table, mine.version, mine.digest) == (theirs.number, theirs.version, theirs.digest)
    assert mine.id == str(UUID(bytes=theirs.row_id))
    assert verifier.bound_rows(raw)[0] == record_items.clock_read(raw)
    one = entry(1, "attempt.received", {}) | {"rows": [part()]}
    assert verifier.leaf_data(one) == record_items.leaf_data(bytes.fromhex(one["sha256"]), raw)
    assert {table for _, table, _ in verifier.TABLES.values()} <= set(BOUND)


@pytest.mark.parametrize("name", [name for name in ROW if name != "id"])
def test_any_field_of_a_bound_row_that_was_changed_before_the_bundle_was_anchored_is_named(name: str) -> None:
    found = faults(bundle(ROW | {name: "another" if name != "signature" else {}}))
    assert found
    assert name == "signature" or any(f"vote {VOTE}" in one for one in found), found


def test_another_image_another_salt_a_newer_version_or_a_deletion_is_found() -> None:
    assert any("not the one that the ledger covers" in one for one in faults(bundle(image=IMAGE + " ")))
    assert any("not the one that the ledger covers" in one for one in faults(bundle(salt=bytes(16))))
    newer = part() + part(version=2)[16:]
    assert any("a newer version" in one for one in faults(bundle(rows=newer)))
    gone = (struct.pack(">q", 1) + struct.pack(">H16sI32s", NUMBER, UUID(VOTE).bytes, 2, bytes(32))).hex()
    assert any("a newer version" in one for one in faults(bundle(rows=part() + gone[16:])))
    assert faults(bundle(rows=part()[:-2]))


def tampered(name: str, document: Any) -> bytes:
    """With a manifest and a zip that fit, as far as there is a manifest for such content."""
    data = verifier.canonical(document)
    try:
        return rewritten(GOOD, **{name: lambda _: data})
    except (KeyError, TypeError, IndexError, AttributeError, ValueError):
        files, _ = verifier.zip_read(GOOD)
        return verifier.zip_write(files | {name: data})


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a JSON document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return (
        [at, *(path for key, one in inner for path in places(one, (*at, key)))]
        if at
        else [path for key, one in inner for path in places(one, (key,))]
    )


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    found = copy.deepcopy(document)
    inside = found
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return found


GOOD = bundle()
FILES = {
    name: json.loads(data)
    for name, data in verifier.zip_read(GOOD)[0].items()
    if name.endswith(".json") and name != verifier.MANIFEST and data != b"[]"
}


@settings(max_examples=300)
@given(st.data())
def test_any_single_value_that_is_changed_in_any_file_is_found(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FILES)))
    path = data.draw(st.sampled_from(places(FILES[name])))
    value = data.draw(st.sampled_from([None, "", "x", 0, 1, True, [], {}, "00" * 32, AT]))
    document = changed(FILES[name], path, value)
    if verifier.canonical(document) == verifier.canonical(FILES[name]):
        return
    assert faults(tampered(name, document)), (name, path, value)


@settings(max_examples=100)
@given(st.data())
def test_any_two_entries_rows_proofs_or_salts_that_are_swapped_are_found(data: st.DataObject) -> None:
    listed = FILES[verifier.ENTRIES]
    first, second = data.draw(st.sampled_from([(a, b) for a in range(len(listed)) for b in range(a)]))
    field = data.draw(st.sampled_from([None, "proof", "rows", "position", "payload", "nonce", "sha256", "id"]))
    document = copy.deepcopy(listed)
    if field is None:
        document[first], document[second] = document[second], document[first]
    else:
        document[first][field], document[second][field] = document[second][field], document[first][field]
    if document == listed:
        return
    assert faults(tampered(verifier.ENTRIES, document)), (first, second, field)


def test_a_carrier_that_is_missing_added_or_tells_more_is_found() -> None:
    carriers = FILES[verifier.CARRIERS]
    for document in ([], carriers * 2, [carriers[0] | {"payload": {}}], [carriers[0] | {"rows": []}]):
        assert faults(tampered(verifier.CARRIERS, document))


def test_an_old_bundle_without_bound_rows_still_verifies_and_says_what_is_not_tied() -> None:
    files, _ = verifier.zip_read(GOOD)
    old = {name: files[name] for name in verifier.CONTENT_1}
    bare = [{key: value for key, value in one.items() if key != "rows"} for one in entries()]
    said = verifier.anchor_payload(old, bare, organization="clinic", subject=SUBJECT)
    listed, checkpoint = proven([*bare, entry(99, verifier.ANCHOR, said, **SYSTEM)])
    old[verifier.ENTRIES] = verifier.canonical(
        [{key: value for key, value in one.items() if key != "rows"} for one in listed]
    )
    old[verifier.CHECKPOINT], old[verifier.KEY] = checkpoint.encode(), f"{PUBLIC}\n".encode()
    old[verifier.MANIFEST] = verifier.canonical(verifier.manifest_of(old))
    report = verifier.verify(verifier.zip_write({name: old[name] for name in verifier.NAMES_1}), public_key=PUBLIC)
    assert (report.result, report.faults) == ("authentic", [])
    assert report.ties["votes"]["bound"] == 0
    assert "tier" in report.ties["votes"]["not_tied"]
