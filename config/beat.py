"""The scheduler that beat runs: django-celery-beat's rows decide what may be sent and how often, `config.due` whether
there is anything to do."""

import time
from typing import Any

from celery import schedules
from django_celery_beat.schedulers import DatabaseScheduler

from config.due import DueLook
from governance.schedule.selectors import PREFIX

# So long a change of the schedule may go unnoticed.
COMPARE_SECONDS = 15.0
# Moments that are closer together than this are one: beat wakes up for all of them at once.
TOGETHER_SECONDS = 0.5


class DueScheduler(DatabaseScheduler):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._look = DueLook()
        self._compared = float("-inf")
        # By name: when its interval is over, on the monotonic clock.
        self._moments: dict[str, float] = {}
        super().__init__(*args, **kwargs)

    def tick(self, *_: Any, **__: Any) -> float:
        """Everything whose interval is over, in one pass; returns the seconds until the next one. Celery's own handles
        one entry per pass, and compares the whole schedule with itself before each: a twentieth of a core for
        nothing."""
        entries, now = self.schedule, time.monotonic()
        self._moments = {name: self._moments.get(name, now) for name in entries}
        for name, moment in self._moments.items():
            if moment <= now + TOGETHER_SECONDS:
                self._moments[name] = self._passed(entries, name, moment, now)
        nearest = min(self._moments.values(), default=now + self.max_interval)
        return float(min(max(nearest - time.monotonic(), 0.01), self.max_interval))

    def _passed(self, entries: dict[str, Any], name: str, moment: float, now: float) -> float:
        """Sends an entry whose moment has come, and says when the next one is."""
        entry = entries[name]
        interval = _interval(entry)
        if interval is not None:
            self.apply_entry(entry, producer=self.producer)
            # From moment to moment, so that the intervals of all stay together; what was missed is not made up for.
            return moment + interval if moment + interval > now else now + interval
        try:
            is_due, seconds = self.is_due(entry)
        except Exception:  # one that cannot be computed must not stop the others
            is_due, seconds = self._is_due_failed(entry)
        if is_due:
            entries[name] = self.reserve(entry)
            self.apply_entry(entry, producer=self.producer)
        return now + min(max(float(seconds or 0), TOGETHER_SECONDS), self.max_interval)

    def schedule_changed(self) -> bool:
        """Asked at every tick: the database is asked every few seconds."""
        now = time.monotonic()
        if now - self._compared < COMPARE_SECONDS:
            return False
        self._compared = now
        return bool(super().schedule_changed())

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Called when an entry's interval is over."""
        if self._look.wants(entry.name.removeprefix(PREFIX)):
            super().apply_entry(entry, producer=producer)

    def sync(self) -> None:
        """Writes nothing: workers note in Valkey when a task ran, and nothing reads it from here."""
        # Celery calls it inside the handler of SIGTERM. A statement there waits for the one that the signal
        # interrupted, for ever.
        self._dirty.clear()


def _interval(entry: Any) -> float | None:
    """The seconds of an entry that is sent at a fixed interval and nothing else; None for any other."""
    model, plain = entry.model, type(entry.schedule) is schedules.schedule
    if not plain or model.start_time or model.expires or model.one_off or not model.enabled:
        return None
    return float(entry.schedule.run_every.total_seconds())
