"""A connection that notices a server which has stopped answering. A frozen server keeps its sockets open and sends
nothing; without a limit, a request would wait for ever.

A short timeout for every statement would also cancel those that are slow or wait for a lock. So after a second of
silence we open a second connection as a probe. While the server accepts it, the statement is left alone. In a web
process a long time limit ends it then, so that one request cannot keep the database busy.
"""

import time
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

# Together below the five seconds within which a request is answered. Two is the shortest timeout that libpq accepts.
SECONDS_OF_SILENCE = 1.0
SECONDS_TO_ANSWER = 2


class WatchedConnection(psycopg.Connection[Any]):
    """psycopg's connection. Waiting ends if the server is silent and does not answer a probe either."""

    def set_autocommit(self, value: bool) -> None:
        """Outside a transaction only sets the flag."""
        # Django calls this twice per transaction. psycopg's version would take its lock and wait each time, for
        # nothing.
        if self.pgconn.transaction_status == TransactionStatus.IDLE:
            self._autocommit = value
        else:
            super().set_autocommit(value)

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        return super().wait(self._watched(gen), *args, **options)

    def _watched(self, gen: Any) -> Generator[Any, Any, Any]:
        """Passes everything through. psycopg resumes the generator every 0.1 s, with nothing if nothing arrived."""
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
            # Closed and not reused: the answer may still arrive later and would be read as the answer of the next
            # statement.
            self.close()
            raise psycopg.OperationalError("The server has stopped answering.") from silence
        except psycopg.OperationalError:
            return  # it answers, even if it refuses (too many connections, for example)
        probe.close()


class DatabaseWrapper(base.DatabaseWrapper):
    # Django takes both the error classes and `connect` from this module.
    Database: Any = SimpleNamespace(**vars(psycopg) | {"connect": WatchedConnection.connect})

    def init_connection_state(self) -> None:
        super().init_connection_state()
        # Not as an option of the connection: PgBouncer refuses those. config.startup sets it in web processes only.
        seconds: float = self.settings_dict.get("STATEMENT_SECONDS", 0)
        if seconds:
            milliseconds = round(seconds * 1000)
            with self.cursor() as cursor:
                # Deferred triggers run with COMMIT, which `statement_timeout` does not end. All that they can wait for
                # is a lock, and that has a limit of its own.
                cursor.execute(f"SET statement_timeout = {milliseconds}; SET lock_timeout = {milliseconds}")
