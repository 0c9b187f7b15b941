"""Adopts the manifest of guards after migrate and after rights were granted, and compares it with the database."""

import json
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from django.db import transaction

from governance.ledger.models import LedgerEntry
from governance.ledger.rules.entry import canonical_bytes
from governance.ledger.services import ledger_append
from governance.record.models import GuardManifest
from governance.record.rules.manifest import Manifest, manifest_counts, manifest_differences
from governance.record.selectors.manifest import guard_manifests, manifest_live
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant

ADOPTED = "record.guards_adopted"
# How many differences an entry names. The others are found by comparing the two manifests.
MOST_NAMED = 20


def guards_adopt(*, at: datetime) -> GuardManifest | None:
    """Records the guards as they are now, if they are not as they were last recorded. None: nothing has changed."""
    # Whoever can change the guards can also have them adopted. So every adoption is an entry that says what changed,
    # and the ledger with its witnesses keeps it.
    live = manifest_live()
    content = canonical_bytes(live).decode()
    digest = sha256(content.encode()).hexdigest()
    before = _adopted()
    if before is not None and before.sha256 == digest:
        return None
    with transaction.atomic():
        row = GuardManifest(sha256=digest, content=content, adopted_at=at)
        row.save()
        changed = manifest_differences(adopted=json.loads(before.content), live=live) if before else []
        ledger_append(
            action=ADOPTED,
            organization_id=None,
            subject_type="guard_manifest",
            subject_id=row.id,
            actor=SYSTEM,
            at=at,
            payload={
                "sha256": digest,
                "before": before.sha256 if before else None,
                "counts": manifest_counts(live),
                "changes": len(changed),
                "changed": changed[:MOST_NAMED],
            },
        )
    return row


def guards_verify() -> list[str] | None:
    """Each difference between the adopted guards and the database, in words. None: no manifest was adopted yet."""
    adopted = _adopted()
    if adopted is None:
        # With entries but no row that fits any of them, somebody removed or changed the manifests.
        if _digests():
            return ["the manifest of guards: its row is gone, or is not what the ledger says"]
        return None
    found: list[str] = []
    if guard_manifests()[0].id != adopted.id:
        found.append("the manifest of guards: a newer row is not what the ledger says")
    kept: Manifest = json.loads(adopted.content)
    return found + manifest_differences(adopted=kept, live=manifest_live())


def _adopted() -> GuardManifest | None:
    """The newest manifest whose content has the digest that its ledger entry says."""
    said = _digests()
    for row in guard_manifests():
        if said.get(row.id) == row.sha256 == sha256(row.content.encode()).hexdigest():
            return row
    return None


def _digests() -> dict[UUID, str | None]:
    """What the ledger says of each manifest."""
    # The guards belong to no organization, and every caller may ask about them.
    with every_tenant():
        rows = LedgerEntry.objects.filter(action=ADOPTED).values_list("subject_id", "payload__sha256")
        return dict(rows)
