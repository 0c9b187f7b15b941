"""The scheduler that beat runs: django-celery-beat's rows decide what may be sent and how often, `config.due` whether
there is anything to do."""

import time
from typing import Any

from django.conf import settings
from django_celery_beat.schedulers import DatabaseScheduler

from config.due import DueLook
from governance.schedule.selectors import PREFIX


class DueScheduler(DatabaseScheduler):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._look = DueLook()
        self._compared = float("-inf")
        super().__init__(*args, **kwargs)

    def schedule_changed(self) -> bool:
        """Asked at every tick, which is many times a second: the database is asked every few seconds."""
        now = time.monotonic()
        if now - self._compared < settings.CELERY_BEAT_MAX_LOOP_INTERVAL:
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
