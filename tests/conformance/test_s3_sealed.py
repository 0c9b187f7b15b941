"""Sentences of S3 about what is sealed: they need transactions that commit, and so a world of their own."""

from hashlib import sha256

import pytest

from governance.ledger.models import LedgerEntry
from governance.sealing.models import LedgerCheckpoint, LedgerLeaf
from governance.sealing.rules.merkle import checkpoint_verify
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.evidence.support import allowed, built, stored
from tests.governance.ledger.sealing import KEY, seal_all

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_bundle_is_stored_with_its_sha256(cast: Cast) -> None:
    """S3 8"""
    bundle = built(cast, allowed(cast))
    assert bundle.sha256 == sha256(stored(bundle)).hexdigest()


def test_the_audit_is_a_chain_with_checkpoints(cast: Cast) -> None:
    """S3 8"""
    asked = allowed(cast)
    with every_tenant():
        entry = LedgerEntry.objects.filter(subject_id=asked).order_by("-id")[0]
        sizes = []
        for _ in range(2):
            seal_all()
            head = LedgerCheckpoint.objects.order_by("-size")[0]
            found = checkpoint_verify(head.text, keys=[(KEY.name, KEY.public)])
            assert (found.size, found.root) == (head.size, bytes(head.root))
            sizes.append(head.size)
            allowed_again(cast)
        assert LedgerLeaf.objects.get(entry_id=entry.id).position < sizes[0] < sizes[1]


def allowed_again(cast: Cast) -> None:
    """One more entry."""
    cast.person("somebody", "auditor")
