"""Reports how a piece of work ended. What the server will not take in full is reported without the details."""

import logging

from holdpoint_client.async_client import AsyncHoldpoint
from holdpoint_client.client import Holdpoint
from holdpoint_client.errors import InvalidRequest
from holdpoint_client.handling import BARE, UNKNOWN, Failure, Success
from holdpoint_client.results import Lease, Reported

log = logging.getLogger("holdpoint_client")


def spare(end: Success | Failure) -> Success | Failure:
    """What is certain stays said: done is done, and what cannot be told exactly is unknown."""
    return BARE if isinstance(end, Success) else UNKNOWN


def note(lease: Lease, error: InvalidRequest) -> None:
    log.warning("report on attempt %s not taken as it was: %s", lease.attempt.id, error.problem.code or error)


def report(client: Holdpoint, lease: Lease, end: Success | Failure) -> Reported:
    try:
        return _once(client, lease, end)
    except InvalidRequest as error:
        note(lease, error)
        return _once(client, lease, spare(end))


def _once(client: Holdpoint, lease: Lease, end: Success | Failure) -> Reported:
    if isinstance(end, Success):
        return client.complete(lease, **end.as_report())
    return client.fail(lease, **end.as_report())


async def report_async(client: AsyncHoldpoint, lease: Lease, end: Success | Failure) -> Reported:
    try:
        return await _once_async(client, lease, end)
    except InvalidRequest as error:
        note(lease, error)
        return await _once_async(client, lease, spare(end))


async def _once_async(client: AsyncHoldpoint, lease: Lease, end: Success | Failure) -> Reported:
    if isinstance(end, Success):
        return await client.complete(lease, **end.as_report())
    return await client.fail(lease, **end.as_report())
