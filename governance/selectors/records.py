"""Reading violations and regional profiles."""

from django.db.models import QuerySet

from governance.models import GovernanceViolation, RegionProfile


def violation_list(*, kind: str | None = None) -> QuerySet[GovernanceViolation]:
    rows = GovernanceViolation.objects.order_by("-id")
    return rows.filter(kind=kind) if kind is not None else rows


def region_profile_list() -> QuerySet[RegionProfile]:
    """The latest version of each region's profile."""
    latest = RegionProfile.objects.order_by("code", "-id").distinct("code").values("id")
    return RegionProfile.objects.filter(id__in=latest)
