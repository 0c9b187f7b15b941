"""Why nothing is sealed, told by the worker that tried, for readiness and metrics in other processes."""

import json
from contextlib import suppress
from datetime import datetime

from redis.exceptions import RedisError

from governance.outside.valkey import valkey

KEY = "holdpoint:sealing:trouble"
# Longer than a sealing worker is silent. Who stopped to try has nothing to say about the signer any more.
SECONDS = 120
WORDS = {
    "key_unreadable": "the sealing key cannot be read",
    "key_not_named": "the sealing key is not the one that the record names (manage.py rotate_ledger_key)",
    "signer_away": "the signer is away",
    "signer_silent": "the signer does not answer",
    "signer_refused_a_fork": "the signer refuses: the record does not continue what it signed",
    "signer_refused_shorter": "the signer refuses: it has signed a longer record",
    "token_silent": "the hardware module does not answer",
    "token_away": "the process that speaks to the hardware module ended",
    "wrong_signature": "the signer's signature does not fit its key",
}


def sealing_trouble_note(*, code: str, at: datetime) -> None:
    # Only a message to people: without Valkey the log has it, and the lag shows in any case.
    with suppress(RedisError):
        valkey().set(KEY, json.dumps([code, at.timestamp()]), ex=SECONDS)


def sealing_trouble_end() -> None:
    with suppress(RedisError):
        valkey().delete(KEY)


def sealing_trouble(*, at: datetime) -> str | None:
    """In words, or None."""
    try:
        found = valkey().get(KEY)
    except RedisError:
        return None
    if found is None:
        return None
    code, since = json.loads(found)
    return f"{WORDS.get(code, code)} ({max(0, round(at.timestamp() - since))} s ago)"
