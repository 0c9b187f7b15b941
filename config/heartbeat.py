"""The heartbeat that goes from beat through broker and worker to Valkey."""

from datetime import datetime

from governance.outside.valkey import valkey

KEY = "holdpoint:heartbeat"


def heartbeat_beat(*, at: datetime) -> None:
    # The expiry only tidies up: an age over an hour means the same as none.
    valkey().set(KEY, at.timestamp(), ex=3600)


def heartbeat_age(*, at: datetime) -> float | None:
    """Seconds since the last beat; None when there was none within the hour."""
    value = valkey().get(KEY)
    return None if value is None else max(0.0, at.timestamp() - float(value))
