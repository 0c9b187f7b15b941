"""A bundle whose head a later key signed: who trusts an earlier key of the chain can follow."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from governance.sealing.rules.handover import Handover, handover_text
from governance.sealing.rules.merkle import verifier_key
from sdk import holdpoint_verify as verifier
from tests.governance.evidence.synthetic import KEY, NAME, OTHER_KEY, PUBLIC, bundle, rewritten

pytestmark = pytest.mark.unit
THIRD = Ed25519PrivateKey.from_private_bytes(bytes(range(2, 34)))
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(range(3, 35)))


def public(key: Ed25519PrivateKey) -> str:
    return verifier_key(NAME, key.public_key())


def line(old: Ed25519PrivateKey, new: Ed25519PrivateKey, *, by: Ed25519PrivateKey | None = None) -> str:
    text = handover_text(old=public(old), new=public(new), size=5)
    return Handover(public(old), public(new), 5, (by or old).sign(text)).line


def of_the_third_key(*handovers: str) -> bytes:
    """Signed by THIRD, with these lines below its key."""
    said = "".join(f"{one}\n" for one in handovers)
    return rewritten(bundle(key=THIRD), **{verifier.KEY: lambda data: data + said.encode()})


CHAIN = (line(OTHER_KEY, THIRD), line(KEY, OTHER_KEY))


@pytest.mark.parametrize("trusted", [KEY, OTHER_KEY, THIRD])
def test_every_key_of_the_chain_leads_to_the_head(trusted: Ed25519PrivateKey) -> None:
    assert verifier.verify(of_the_third_key(*CHAIN), public_key=public(trusted)).faults == []


def test_a_key_outside_of_the_chain_does_not() -> None:
    found = verifier.verify(of_the_third_key(*CHAIN), public_key=public(STRANGER)).faults
    assert any("nor one that such a key handed over to" in fault for fault in found)


def test_without_the_handovers_an_earlier_key_does_not_reach_the_head() -> None:
    assert verifier.verify(of_the_third_key(), public_key=PUBLIC).faults
    assert verifier.verify(of_the_third_key(CHAIN[0]), public_key=PUBLIC).faults


@pytest.mark.parametrize(
    "lines",
    [
        (line(OTHER_KEY, THIRD, by=STRANGER), CHAIN[1]),  # forged: the old key did not sign
        (line(KEY, THIRD, by=THIRD),),  # a thief's own key says that it was named
        tuple(reversed(CHAIN)),
        (CHAIN[0].replace(" 5 ", " 6 "), CHAIN[1]),
        (CHAIN[0], CHAIN[1], "handover"),
        (CHAIN[0], PUBLIC),
        (CHAIN[0], line(KEY, STRANGER)),
    ],
)
def test_forged_or_disordered_handovers_are_faults_whoever_is_trusted(lines: tuple[str, ...]) -> None:
    for trusted in (PUBLIC, public(THIRD), ""):
        assert verifier.verify(of_the_third_key(*lines), public_key=trusted).faults


def test_the_published_history_may_be_given_whole() -> None:
    history = "\n".join(["# keys of our ledger", PUBLIC, *CHAIN])
    assert verifier.verify(of_the_third_key(), public_key=history).faults == []
    assert verifier.verify(bundle(), public_key=history).faults == [], "and bundles from before the change"
    with pytest.raises(verifier.Unusable):
        verifier.verify(bundle(), public_key="\n".join([PUBLIC, line(KEY, THIRD, by=STRANGER)]))


def test_a_bundle_of_one_key_is_as_it_was() -> None:
    assert verifier.verify(bundle(), public_key=PUBLIC).faults == []
    assert verifier.zip_read(bundle())[0][verifier.KEY] == PUBLIC.encode() + b"\n"
