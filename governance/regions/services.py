"""Stores the regional profiles that ship with the program, after every migrate."""

from datetime import datetime

from django.db import transaction

from governance.ledger.services import ledger_append
from governance.regions.models import RegionProfile
from governance.regions.rules import load_profiles
from reasoncodes.base.actors import SYSTEM


def region_profiles_adopt(*, at: datetime) -> list[RegionProfile]:
    """Inserts the profiles whose content is new. Safe to repeat."""
    # Old rows stay: decisions and records name the profile they used by its hash.
    shipped = load_profiles()
    known = set(RegionProfile.objects.values_list("sha256", flat=True))
    adopted = []
    with transaction.atomic():
        for profile in shipped.profiles:
            if profile.sha256 in known:
                continue
            row = RegionProfile(
                code=profile.code,
                name=profile.name,
                version=profile.version,
                sha256=profile.sha256,
                document=profile.document,
                disclaimer=shipped.disclaimer,
                at=at,
            )
            row.save()
            ledger_append(
                action="region_profile.adopted",
                organization_id=None,
                subject_type="region_profile",
                subject_id=row.id,
                actor=SYSTEM,
                at=at,
                payload={"code": row.code, "version": row.version, "sha256": row.sha256},
            )
            adopted.append(row)
    return adopted
