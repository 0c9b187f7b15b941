"""Refusals of this app. Those that break a rule of the record are violations and are recorded as such."""

from reasoncodes.base.errors import DomainError


class ErasureBlocked(DomainError):
    """This erasure is blocked by a legal hold, retention, an open quarantine case or unfinished work.

    `errors` names each obstacle with a count. A legal hold blocks erasure until a second person releases it. An open
    quarantine case blocks it until somebody resolves the case. Refuse the request with the reason that applies, or
    wait.
    """

    code = "erasure-blocked"
    status = 409
    title = "Erasure is blocked"


class ExportNotReady(DomainError):
    """The archive of this export is not built yet.

    Holdpoint builds it in the background. `state`, `done` and `total` show the progress. Ask again after `Retry-After`.
    """

    code = "export-not-ready"
    status = 409
    title = "Export is not ready"
    default_headers = {"Retry-After": "5"}


class ExportGone(DomainError):
    """The archive of this export has expired and was removed.

    Its SHA-256 stays on the ledger. Request a new export if you still need the data.
    """

    code = "export-gone"
    status = 410
    title = "Export has expired"
