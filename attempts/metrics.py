"""Counters of this app. Labels are codes, states and names of ours, never text of a caller: each value is a series."""

from prometheus_client import Counter

REFUSED_AT_THE_DOOR = Counter(
    "holdpoint_attempts_refused_unread_total", "Attempts refused before their body was read.", ["reason_code"]
)
NOTIFICATIONS = Counter(
    "holdpoint_notifications_total", "Messages about reviews, by what became of a try.", ["channel", "outcome"]
)
ATTEMPTS = Counter("holdpoint_attempts_total", "Answers to intake requests whose body was read.", ["status"])
TICK_ROWS_FAILED = Counter(
    "holdpoint_tick_rows_failed_total", "Due rows that a scheduled task could not handle.", ["tick"]
)
