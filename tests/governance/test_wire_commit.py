"""Outside a transaction the commit follows the statement's answer: when it fails, the caller is told."""

import pytest
from django.db import IntegrityError, connection

from governance.sql.statements import fetch
from governance.sql.wire import ready

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("prepare", [True, False])
def test_a_commit_that_fails_after_the_answer_is_an_error(prepare: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE wire_commit (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    try:
        sql = "INSERT INTO wire_commit SELECT 1 FROM generate_series(1, 2) RETURNING n"
        with pytest.raises(IntegrityError):
            fetch(sql, ready([]), prepare=prepare)
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM wire_commit")
            assert cursor.fetchone() == (0,)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE wire_commit")
