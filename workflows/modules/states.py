"""How a module is reached, which effects and methods its operations may have, and the states of a call over HTTP."""

from enum import StrEnum


class ModuleTransport(StrEnum):
    """`http`: Holdpoint calls the module's address. `stream`: the module reads its requests from the streams."""

    HTTP = "http"
    STREAM = "stream"


class CallState(StrEnum):
    """Of one request over HTTP. `sending`: it was begun, and until its result is written nobody knows whether it
    arrived."""

    WAITING = "waiting"
    SENDING = "sending"
    ENDED = "ended"


METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET")
# These have no body: what is sent stands in the query.
BODILESS = frozenset({"DELETE", "GET"})
