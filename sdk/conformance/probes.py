"""The probes. Each is a generator: it yields requests (those of one list are sent at the same time) and gets the
answers. It returns None if the module conforms, or one sentence that says what it did instead.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from sdk.conformance.messages import (
    Kit,
    MessageForm,
    ModuleAnswer,
    ModuleMessage,
    Request,
    completed,
    signature,
    with_headers,
)
from workflows.events.rules import stamp

Script = Generator[list[Request], list[ModuleAnswer], str | None]
# The statuses that count as a refusal and so on. The rules leave a module the choice (docs/modules.md).
REFUSALS = frozenset({400, 401, 403})
BUSY = frozenset({409, 425, 429, 503})
CONFLICTS = frozenset({409, 422})
UNREADABLE = frozenset({400, 415, 422})
# Ten minutes are outside the tolerance of Standard Webhooks (five minutes), in both directions.
OLD, LATE, NEW = timedelta(minutes=10), timedelta(days=2), timedelta(minutes=-10)
AT_ONCE = 5


class ProbeGroup(StrEnum):
    TAKES = "takes"
    DUPLICATES = "duplicates"
    ORDER = "late and reordered"
    FORGED = "forged"
    SHAPE = "shape"


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    group: ProbeGroup
    rule: str
    script: Callable[[Kit], Script]
    keys: tuple[str, ...] = ()
    """Messages of this probe whose work must be done exactly once, if the module counts it."""
    never: tuple[str, ...] = ()
    """Messages whose work must not be done at all."""


def taken(answer: ModuleAnswer, what: str) -> str | None:
    return None if answer.taken else f"answered {answer} to {what}; 2xx was expected"


def expect_refusal(answer: ModuleAnswer, what: str) -> str | None:
    return None if answer.status in REFUSALS else f"answered {answer} to {what}; 400, 401 or 403 was expected"


def first(kit: Kit) -> Script:
    (answer,) = yield [kit.sign(kit.message("first"))]
    return taken(answer, "a good message")


def twice(kit: Kit) -> Script:
    """A repetition gets the same answer, and the work is done once."""
    # As Holdpoint repeats it: the same id, key and body, signed again with the present time.
    message = kit.message("twice")
    (one,) = yield [kit.sign(message)]
    (two,) = yield [kit.sign(message)]
    if problem := taken(one, "a good message") or taken(two, "its repetition"):
        return problem
    if (one.status, one.body) != (two.status, two.body):
        return "answered the repetition in other words than the first time"
    return None


def at_once(kit: Kit) -> Script:
    """Several at the same time: the work is done once. While the first is being processed, the others may be told to
    come back."""
    message = kit.message("at_once")
    answers = yield [kit.sign(message) for _ in range(AT_ONCE)]
    wrong = [str(one) for one in answers if not one.taken and one.status not in BUSY]
    if wrong:
        return f"answered {', '.join(wrong)} to {AT_ONCE} at once; 2xx, 409, 425, 429 or 503 was expected"
    if not any(one.taken for one in answers):
        return f"took none of {AT_ONCE} at once"
    # Afterwards it is a plain repetition: a module that only answered "busy" would lose it.
    (again,) = yield [kit.sign(message)]
    return taken(again, "the message after the rush")


def conflict(kit: Kit) -> Script:
    """The same key with another body, correctly signed: nothing new is done."""
    message = kit.message("conflict")
    (one,) = yield [kit.sign(message)]
    (two,) = yield [kit.sign(changed(message))]
    if problem := taken(one, "a good message"):
        return problem
    if two.status in CONFLICTS or (two.taken and two.body == one.body):
        return None
    return f"answered {two} to another body under a known key; the first answer, 409 or 422 was expected"


def changed(message: ModuleMessage) -> ModuleMessage:
    if message.form is MessageForm.CALL:
        return replace(message, document={**message.document, "target_ref": "conformance-other"})
    data = {**message.document["data"], "mode": "client_driven"}
    return replace(message, document={**message.document, "data": data})


def late(kit: Kit) -> Script:
    """A message about something two days ago, signed now, is accepted."""
    # A redelivery after an outage: a module that compares the event's time instead of the signature's would lose it.
    changes: dict[str, Any] = {}
    if kit.form is MessageForm.WEBHOOK:
        changes["timestamp"] = stamp(kit.clock() - LATE)
    (answer,) = yield [kit.sign(kit.message("late", **changes))]
    return taken(answer, "a message about something of two days ago, signed now")


def reordered(kit: Kit) -> Script:
    """The later message arrives first; both are accepted."""
    earlier, later = kit.message("reordered/1"), kit.message("reordered/2")
    if kit.form is MessageForm.WEBHOOK:
        later = completed(later, earlier)
    (two,) = yield [kit.sign(later)]
    (one,) = yield [kit.sign(earlier)]
    return taken(two, "a later message that came first") or taken(one, "an earlier message that came second")


def forged(name: str, what: str, forge: Callable[[Kit, ModuleMessage], Request]) -> Callable[[Kit], Script]:
    """A script: the forgery is refused, and the real message with the same id is accepted afterwards."""

    def script(kit: Kit) -> Script:
        message = kit.message(name)
        (answer,) = yield [forge(kit, message)]
        if problem := expect_refusal(answer, what):
            return problem
        # A module that remembers ids before it checks signatures would let a forger block real messages.
        (real,) = yield [kit.sign(message)]
        return taken(real, f"the real message after {what}")

    return script


def captured(kit: Kit) -> Script:
    """A real message that somebody recorded and sends again later, with its headers."""
    message = kit.message("captured")
    (answer,) = yield [kit.sign(message, age=OLD)]
    return expect_refusal(answer, "a right signature of ten minutes ago")


def from_the_future(kit: Kit) -> Script:
    (answer,) = yield [kit.sign(kit.message("future"), age=NEW)]
    return expect_refusal(answer, "a right signature of ten minutes ahead")


def rotation(kit: Kit) -> Script:
    """While a secret is changed, a message has two signatures. The module may know either secret."""
    message = kit.message("rotation")
    (answer,) = yield [kit.sign(message, secrets=[b"another secret, in force soon", kit.secret])]
    return taken(answer, "a message with two signatures, the second of which is right")


def unreadable(kit: Kit) -> Script:
    """Correctly signed, but not JSON: refused with 4xx."""
    message = kit.message("unreadable")
    request, body = kit.sign(message), b"{"
    at = request.headers["webhook-timestamp"]
    signed = with_headers(request, webhook_signature=signature(kit.secret, message.id, at, body))
    (answer,) = yield [Request(body, signed.headers)]
    return None if answer.status in UNREADABLE else f"answered {answer} to a body that is no JSON; 4xx was expected"


def _flipped(kit: Kit, message: ModuleMessage) -> Request:
    request = kit.sign(message)
    at = len(request.body) // 2
    return Request(request.body[:at] + bytes([request.body[at] ^ 1]) + request.body[at + 1 :], request.headers)


def _longer(kit: Kit, message: ModuleMessage) -> Request:
    request = kit.sign(message)
    return Request(request.body + b" ", request.headers)


def _other_id(kit: Kit, message: ModuleMessage) -> Request:
    own = {"Idempotency_Key": message.key} if message.form is MessageForm.CALL else {}
    return with_headers(kit.sign(kit.message("of another")), webhook_id=message.id, **own)


def _fresher(kit: Kit, message: ModuleMessage) -> Request:
    request = kit.sign(message, age=OLD)
    return with_headers(request, webhook_timestamp=str(int(kit.clock().timestamp())))


def _no_number(kit: Kit, message: ModuleMessage) -> Request:
    return with_headers(kit.sign(message), webhook_timestamp="now")


def _other_version(kit: Kit, message: ModuleMessage) -> Request:
    request = kit.sign(message)
    return with_headers(request, webhook_signature=request.headers["webhook-signature"].replace("v1,", "v9,"))


FORGERIES: tuple[tuple[str, str, Callable[[Kit, ModuleMessage], Request]], ...] = (
    ("unsigned", "a message without a signature", lambda kit, m: with_headers(kit.sign(m), webhook_signature=None)),
    ("wrong_secret", "a signature by another secret", lambda kit, m: kit.sign(m, secrets=[b"not the secret at all"])),
    ("body_flipped", "a body with one bit changed", _flipped),
    ("body_longer", "a body with one byte more", _longer),
    ("id_swapped", "a signature of another message", _other_id),
    ("timestamp_swapped", "an old message with a fresh timestamp", _fresher),
    ("timestamp_unreadable", "a timestamp that is no number", _no_number),
    ("no_timestamp", "a message without a timestamp", lambda kit, m: with_headers(kit.sign(m), webhook_timestamp=None)),
    ("other_version", "a signature of a version that is not v1", _other_version),
    ("garbage", "a signature of foreign letters", lambda kit, m: with_headers(kit.sign(m), webhook_signature="v1,é")),
)


def probes() -> list[Probe]:
    """In the order in which they are run."""
    return [
        Probe("first", ProbeGroup.TAKES, "takes a good message with 2xx", first, keys=("first",)),
        Probe("rotation", ProbeGroup.TAKES, "takes any right signature of several", rotation, keys=("rotation",)),
        Probe("twice", ProbeGroup.DUPLICATES, "answers a repetition as the first time", twice, keys=("twice",)),
        Probe("at_once", ProbeGroup.DUPLICATES, "does the work once when it comes at once", at_once, keys=("at_once",)),
        Probe("conflict", ProbeGroup.DUPLICATES, "does nothing new under a known key", conflict, keys=("conflict",)),
        Probe("late", ProbeGroup.ORDER, "takes what is late, when it is signed now", late, keys=("late",)),
        Probe(
            "reordered",
            ProbeGroup.ORDER,
            "takes what comes in another order",
            reordered,
            keys=("reordered/1", "reordered/2"),
        ),
        Probe("captured", ProbeGroup.FORGED, "refuses what was signed too long ago", captured, never=("captured",)),
        Probe("future", ProbeGroup.FORGED, "refuses what was signed in the future", from_the_future, never=("future",)),
        *[
            Probe(
                name, ProbeGroup.FORGED, f"refuses {what}, and uses nothing up", forged(name, what, forge), keys=(name,)
            )
            for name, what, forge in FORGERIES
        ],
        Probe(
            "unreadable", ProbeGroup.SHAPE, "refuses what it cannot read, with 4xx", unreadable, never=("unreadable",)
        ),
    ]
