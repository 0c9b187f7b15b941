"""The stand-alone verifier: any bit, any rewriting, any nonsense; and that it stands alone."""

import ast
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from governance.evidence.rules import BundleSubject, Collected, Material, content_files
from governance.sealing.rules.merkle import verifier_key
from sdk import holdpoint_verify as verifier
from tests.governance.evidence import synthetic
from tests.governance.evidence.synthetic import KEY, OTHER_KEY, PUBLIC, bundle, content, entry, rewritten
from tests.properties import SCALE

pytestmark = pytest.mark.unit
SOURCE = Path(verifier.__file__)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def faults(data: bytes, public_key: str = PUBLIC) -> list[str]:
    return verifier.verify(data, public_key=public_key).faults


def test_a_bundle_that_nobody_touched_is_valid_with_and_without_the_key() -> None:
    assert faults(bundle()) == []
    found = verifier.verify(bundle())
    assert found.valid
    assert found.fingerprint
    assert not found.key_was_given


def test_a_flipped_bit_in_any_byte_is_caught() -> None:
    """Every second byte (every sixth in `make check`), one bit of it; other ones in every run."""
    data, chance = bundle(), random.Random()
    missed = []
    apart = max(2, round(2 / SCALE))
    for place in range(chance.randrange(apart), len(data), apart):
        changed = bytearray(data)
        changed[place] ^= 1 << chance.randrange(8)
        if not faults(bytes(changed), public_key=""):
            missed.append(place)
    assert missed == []


def test_every_bit_of_the_zips_own_fields_is_caught() -> None:
    data = bundle()
    begin = data.index(b"PK\x01\x02")
    places = [*range(30), *range(begin, begin + 46), *range(len(data) - 22, len(data))]
    for place in places:
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            assert faults(bytes(changed), public_key=""), (place, bit)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b"x",
        lambda data: b"x" + data,
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data + data,
        lambda data: b"",
        lambda data: b"PK\x05\x06" + bytes(18),
    ],
    ids=["behind", "in front", "cut", "half", "twice", "nothing", "empty zip"],
)
def test_bytes_in_front_behind_or_missing_are_caught(change: Any) -> None:
    assert faults(change(bundle()), public_key="")


def test_files_that_are_missing_added_twice_or_in_another_order_are_named() -> None:
    files, _ = verifier.zip_read(bundle())
    without = {name: data for name, data in files.items() if name != "votes.json"}
    assert "votes.json: it is missing" in faults(verifier.zip_write(without))
    assert any(
        "'more.json': it does not belong" in one for one in faults(verifier.zip_write({**files, "more.json": b""}))
    )
    assert any("order" in one for one in faults(verifier.zip_write(dict(reversed(files.items())))))
    one = verifier.zip_write({"manifest.json": b"{}"})
    assert any("twice" in fault for fault in faults(one[: one.index(b"PK\x01\x02")] + bundle()))


@pytest.mark.parametrize("name", verifier.CONTENT)
def test_a_rewritten_file_with_a_fitting_manifest_and_zip_is_not_what_the_ledger_names(name: str) -> None:
    def change(data: bytes) -> bytes:
        return verifier.canonical([*verifier.read_canonical_json(data), {}]) if name.endswith(".json") else data + b"#"

    assert f"{name}: it is not the file that the ledger names" in faults(rewritten(bundle(), **{name: change}))


def entries_changed(data: bytes, change: Any) -> bytes:
    return rewritten(
        data, **{verifier.ENTRIES: lambda old: verifier.canonical(change(verifier.read_canonical_json(old)))}
    )


TWO = [entry(1, "attempt.received", {"digest": "ab"}), entry(2, "attempt.replayed", {"state": "completed"})]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda rows: rows[1:], "not all the entries"),
        (lambda rows: [rows[1], rows[0], rows[2]], "not all the entries"),
        (lambda rows: [rows[0], *rows], "not all the entries"),
        (lambda rows: [rows[0] | {"action": "attempt.denied"}, *rows[1:]], "it was changed"),
        (lambda rows: [rows[0] | {"payload": {"digest": "cd"}}, *rows[1:]], "its payload was changed"),
        (lambda rows: [rows[0] | {"position": 3}, *rows[1:]], "not in the signed head"),
        (lambda rows: [rows[0] | {"position": 99}, *rows[1:]], "outside the tree"),
        (lambda rows: [rows[0] | {"proof": rows[0]["proof"][1:]}, *rows[1:]], "too short"),
        (lambda rows: [rows[0] | {"proof": [*rows[0]["proof"], "00" * 32]}, *rows[1:]], "too long"),
        (lambda rows: [rows[0] | {"more": 1}, *rows[1:]], "other fields"),
        (lambda rows: [rows[0] | {"payload": None}, *rows[1:]], "its nonce is not"),
        (lambda rows: [entry(1, "attempt.denied", {}) | {"position": 2, "proof": []}, *rows[1:]], "proof is too short"),
    ],
)
def test_entries_left_out_moved_doubled_or_changed_are_named(change: Any, named: str) -> None:
    found = faults(entries_changed(bundle(entries=TWO), change))
    assert any(named in one for one in found), found


def test_a_log_signed_by_somebody_else_is_caught_with_the_key_and_shows_its_fingerprint_without() -> None:
    forged = bundle(key=OTHER_KEY)
    assert any("not a key that was given" in one for one in faults(forged))
    assert verifier.verify(forged).fingerprint != verifier.verify(bundle()).fingerprint


def test_a_signature_by_another_key_under_the_same_name_is_caught() -> None:
    forged, _ = verifier.zip_read(bundle(key=OTHER_KEY))
    files = rewritten(bundle(), **{verifier.CHECKPOINT: lambda _: forged[verifier.CHECKPOINT]})
    assert any("not signed by the key" in one for one in faults(files))


def test_the_files_that_the_ledger_names_are_the_ones_that_count() -> None:
    assert faults(bundle(content(report=b"<p>another</p>"), anchored=content()))


def test_an_opening_that_does_not_fit_its_commitment_is_caught() -> None:
    wrong = [
        {"kind": "person", "reference": synthetic.PERSON, "opening": {"salt": "11" * 32, "user_id": "x", "name": ""}}
    ]
    found = faults(bundle(content(people=verifier.canonical(wrong))))
    assert any("the opening does not fit" in one for one in found)


def test_rows_that_the_ledger_does_not_know_are_named() -> None:
    vote = {
        "id": "v",
        "review_id": "r",
        "verdict": "approve",
        "action_digest": "",
        "on_behalf_of_ref": "",
        "note_sha256": "",
        "voter_ref": "",
        "reason_code": "",
        "at": "",
    }
    assert "vote v: no ledger entry records it" in faults(bundle(content(votes=verifier.canonical([vote]))))
    missing = [entry(1, "review.voted", {"vote": "w"})]
    assert "vote w: the ledger names it and it is not there" in faults(bundle(entries=missing))


@given(st.binary(max_size=400))
def test_nonsense_is_not_valid_and_never_an_exception(data: bytes) -> None:
    assert not verifier.verify(data).valid
    assert not verifier.verify(b"PK\x03\x04" + data).valid


@given(st.sampled_from([*verifier.ROWS, verifier.ENTRIES]), JSON)
def test_any_json_in_the_place_of_a_file_is_a_fault_and_never_an_exception(name: str, value: Any) -> None:
    files, _ = verifier.zip_read(bundle())
    if files[name] != verifier.canonical(value):
        assert not verifier.verify(verifier.zip_write({**files, name: verifier.canonical(value)})).valid


@given(JSON)
def test_canonical_json_is_that_of_the_reference(value: Any) -> None:
    assert verifier.canonical(value) == rfc8785.dumps(value)
    assert verifier.canonical(verifier.read_canonical_json(verifier.canonical(value))) == rfc8785.dumps(value)


@given(st.dictionaries(st.from_regex(r"[a-z/]{1,20}", fullmatch=True), st.binary(max_size=60), max_size=6))
def test_a_zip_is_the_same_bytes_every_time_and_reads_back(files: dict[str, bytes]) -> None:
    once = verifier.zip_write(files)
    assert verifier.zip_write(dict(files)) == once
    if files:
        assert verifier.zip_read(once) == (files, [])


SAID = st.dictionaries(st.sampled_from(["status", "ünïcode", "z"]), JSON, max_size=3)


@settings(max_examples=50)
@given(st.lists(SAID, max_size=3))
def test_the_same_rows_give_the_same_files(said: list[dict[str, Any]]) -> None:
    def receipt(metadata: dict[str, Any]) -> dict[str, Any]:
        shape = {"at": synthetic.AT, "outcome": "success", "late": False, "reason_code": "", "reversible": False}
        return shape | {"response_metadata": dict(reversed(metadata.items())), "cost": None}

    def made() -> dict[str, bytes]:
        subject = BundleSubject("attempt", synthetic.UUID(int=2), "an attempt")
        told = Material(subject, synthetic.UUID(int=1), frozenset(), (), receipts=[receipt(one) for one in said])
        return content_files(Collected(told, {"slug": "clinic", "name": "Clinic"}, [], [], [], []))

    assert made() == made()


def test_text_in_the_report_is_escaped_and_nothing_is_fetched_or_run() -> None:
    nasty = '<script>alert(1)</script><img src="https://evil.example/x">'
    subject = BundleSubject("attempt", synthetic.UUID(int=2), nasty)
    told = Material(subject, synthetic.UUID(int=1), frozenset(), ())
    page = content_files(Collected(told, {"slug": nasty, "name": nasty}, [], [], [], []))["report.html"].decode()
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    assert "src=" not in page.replace("src=&quot;", "")
    assert "http" not in page.replace("http-equiv", "").replace("https://evil.example", "")


def test_it_is_python_3_9_and_imports_the_standard_library_and_cryptography_alone() -> None:
    tree = ast.parse(SOURCE.read_text(), feature_version=(3, 9))
    names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names | {"cryptography"}


def run(*arguments: str, setup: str = "") -> subprocess.CompletedProcess[str]:
    """In an interpreter of its own that can import the standard library and `cryptography`, and nothing else."""
    import cryptography

    site = Path(cryptography.__file__).parents[1]
    program = f"""
import sys, runpy
sys.path.append({str(site)!r})
class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in {{"cryptography", "_cffi_backend", "cffi"}}:
            raise ImportError("only the standard library and cryptography: " + name)
sys.meta_path.insert(0, Only())
{setup}
sys.argv = ["holdpoint_verify.py", *{list(arguments)!r}]
runpy.run_path({str(SOURCE)!r}, run_name="__main__")
"""
    return subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def test_it_runs_alone_and_its_exit_codes_are_zero_one_two_and_three(tmp_path: Path) -> None:
    good, bad, key = tmp_path / "good.zip", tmp_path / "bad.zip", tmp_path / "key.txt"
    good.write_bytes(bundle())
    bad.write_bytes(rewritten(bundle(), **{"votes.json": lambda _: b"[{}]"}))
    key.write_text(PUBLIC + "\n")
    said = run(str(good), "--public-key", str(key))
    assert (said.returncode, said.stdout.startswith("authentic: attempt")) == (0, True), said.stderr
    alone = run(str(good))
    assert (alone.returncode, alone.stdout.startswith("consistent, but whose is unknown")) == (3, True)
    forged = tmp_path / "forged.zip"
    forged.write_bytes(bundle(key=OTHER_KEY))
    assert run(str(forged)).returncode == 3, "a forger's own log is consistent too"
    assert run(str(forged), "--public-key", str(key)).returncode == 1
    wrong = run(str(bad), "--public-key", PUBLIC)
    assert wrong.returncode == 1
    assert "votes.json" in wrong.stdout
    assert run(str(tmp_path / "none.zip")).returncode == 2
    assert run(str(good), "--public-key", "nonsense").returncode == 2
    assert '"result": "consistent"' in run(str(good), "--json").stdout


def test_a_file_of_keys_that_somebody_keeps_says_whose_it_is(tmp_path: Path) -> None:
    good, keys = tmp_path / "good.zip", tmp_path / "holdpoint-keys.json"
    good.write_bytes(bundle())
    keys.write_text(json.dumps(verifier.keys_document([PUBLIC], [])))
    assert run(str(good), "--keys", str(keys)).returncode == 0
    keys.write_text(json.dumps(verifier.keys_document([verifier_key(synthetic.NAME, OTHER_KEY.public_key())], [])))
    assert run(str(good), "--keys", str(keys)).returncode == 1
    for wrong in ("{}", "nonsense", json.dumps({"format": "holdpoint-keys-v1", "keys": []})):
        keys.write_text(wrong)
        assert run(str(good), "--keys", str(keys)).returncode == 2
    assert run(str(good), "--keys", str(tmp_path / "none.json")).returncode == 2


def test_the_copy_in_a_bundle_says_that_it_is_one(tmp_path: Path) -> None:
    good, copy = tmp_path / "good.zip", tmp_path / "verify.py"
    good.write_bytes(bundle())
    copy.write_text(verifier.copy_source(SOURCE.read_text()))
    said = subprocess.run([sys.executable, str(copy), str(good)], capture_output=True, text=True, check=False)
    assert (said.returncode, "take the published one" in said.stderr) == (3, True)
    assert "take the published one" not in run(str(good)).stderr


def test_without_cryptography_it_says_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "good.zip"
    path.write_bytes(bundle())
    said = run(str(path), setup="sys.modules['cryptography'] = None")
    assert said.returncode == 2
    assert "cryptography" in said.stderr


def test_the_key_of_these_tests_is_the_one_that_signs() -> None:
    assert verifier.key_read(PUBLIC).raw == KEY.public_key().public_bytes_raw()
