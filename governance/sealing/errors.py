"""Refusals of this app. Those that break a rule of the record are violations and are recorded as such."""

from collections.abc import Mapping
from typing import ClassVar

from reasoncodes.base.errors import DomainError


class NotSealedYet(DomainError):
    """The entry is on the record, but no signed head covers it yet.

    Entries are usually sealed within seconds. Ask again after `Retry-After`. If this does not end, check `sealer` under
    `/health/ready`.
    """

    code = "not-sealed-yet"
    status = 409
    title = "Not sealed yet"
    default_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "2"}


class KeyChangeRefused(DomainError):
    """The sealing key cannot be changed in this way.

    The detail says why. `GET /api/v1/ledger/public-key` shows which key signs now and which one is named to be next.
    """

    code = "key-change-refused"
    status = 409
    title = "Key change refused"
