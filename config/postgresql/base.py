"""A frozen server keeps its sockets open and says nothing: without a limit, who asks it waits for ever.

A timeout for every statement would also cut those that are slow or wait for a lock. So silence is only a reason to ask:
while the server still takes a new connection, the statement is left alone.
"""

import time
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

# Together under the five seconds within which a request is answered; libpq takes two as the shortest.
SECONDS_OF_SILENCE = 1.0
SECONDS_TO_ANSWER = 2


class WatchedConnection(psycopg.Connection[Any]):
    """psycopg's, whose waiting ends when the server is silent and takes no new connection either."""

    def set_autocommit(self, value: bool) -> None:
        """Django says it twice per transaction. Outside of one it is only a note, for which nothing needs waiting."""
        if self.pgconn.transaction_status == TransactionStatus.IDLE:
            self._autocommit = value
        else:
            super().set_autocommit(value)

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        return super().wait(self._watched(gen), *args, **options)

    def _watched(self, gen: Any) -> Generator[Any, Any, Any]:
        """Hands everything through. psycopg resumes the generator every 0.1 s, with nothing when nothing came."""
        silent_since: float | None = None
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    silent_since = None
                elif time.monotonic() - (silent_since := silent_since or time.monotonic()) > SECONDS_OF_SILENCE:
                    self._close_unless_it_answers()
                    silent_since = None
                state = gen.send(ready)
        except StopIteration as done:
            return done.value

    def _close_unless_it_answers(self) -> None:
        try:
            probe = psycopg.connect(self.info.dsn, password=self.info.password, connect_timeout=SECONDS_TO_ANSWER)
        except psycopg.errors.ConnectionTimeout as silence:
            self.close()
            raise psycopg.OperationalError("The server has stopped answering.") from silence
        except psycopg.OperationalError:
            return  # it answers, if only to refuse: too many connections, say
        probe.close()


class DatabaseWrapper(base.DatabaseWrapper):
    # Django asks this module both for its errors and for a connection.
    Database = SimpleNamespace(**vars(psycopg) | {"connect": WatchedConnection.connect})  # type: ignore[assignment]
