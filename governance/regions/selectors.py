"""Reads the stored regional profiles."""

from django.db.models import QuerySet

from governance.regions.models import RegionProfile


def region_profile_list() -> QuerySet[RegionProfile]:
    """The latest version of each region's profile."""
    latest = RegionProfile.objects.order_by("code", "-id").distinct("code").values("id")
    return RegionProfile.objects.filter(id__in=latest)
