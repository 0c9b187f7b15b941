"""Waiting for the database: slow is waited for, silent is not. (A frozen server: tests/stack/test_make_run.py.)"""

import pytest
from django.db import DataError, connection, transaction

from config.postgresql.base import SECONDS_OF_SILENCE, WatchedConnection


def test_a_statement_that_is_slow_is_left_alone_while_the_server_answers(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s), 7", [SECONDS_OF_SILENCE * 1.5])
        assert cursor.fetchone() == ("", 7)


def test_every_connection_of_django_is_watched(db: None) -> None:
    connection.ensure_connection()
    assert isinstance(connection.connection, WatchedConnection)


def test_what_the_server_refuses_is_raised_as_django_s_error(db: None) -> None:
    with pytest.raises(DataError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1/0")
