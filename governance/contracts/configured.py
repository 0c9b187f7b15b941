"""Settings of contracts: how many different people the ten approvals must come from."""

from django.conf import settings


def readiness_people() -> int:
    # Never fewer than one: nobody would otherwise have to approve.
    return max(1, int(settings.READINESS_PEOPLE))
