import pytest
from django.db import connection

from attempts.services import lease, lease_expire, queue
from reasoncodes.tenancy import every_tenant
from tests.attempts.execution.support import asked, contract


@pytest.mark.django_db(transaction=True)
def test_x(cast, caller):
    contract(cast)
    a = asked(caller)
    with connection.cursor() as c:
        c.execute(
            "SELECT string_agg(quote_ident(column_name), ',') FROM information_schema.columns WHERE table_name='attempts_attempt' AND column_name NOT IN ('id','queued_until','next_eligible_at','lease_expires_at')"
        )
        cols = c.fetchone()[0]

        def fill(n, q, e, l):
            c.execute(
                f"INSERT INTO attempts_attempt (id, queued_until, next_eligible_at, lease_expires_at, {cols}) SELECT gen_random_uuid(), {q}, {e}, {l}, {cols} FROM attempts_attempt, generate_series(1,{n}) WHERE id=%s",
                [a],
            )

        fill(40000, "now()+interval '1 hour'", "NULL", "NULL")
        fill(40000, "NULL", "now()+interval '1 hour'", "NULL")
        fill(40000, "NULL", "NULL", "now()+interval '1 hour'")
        fill(100, "NULL", "NULL", "now()-interval '1 minute'")
        fill(100, "NULL", "now()-interval '1 minute'", "NULL")
        c.execute("ANALYZE attempts_attempt")

        def explain(name, sql, params):
            c.execute("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) " + sql, params)
            rows = [r[0] for r in c.fetchall()]
            print(name)
            print("\n".join(r for r in rows if "Scan" in r or "Buffers" in r[:20] or "Time" in r))

        explain("expire", lease_expire.DUE, ["-infinity", "00000000-0000-0000-0000-000000000000", 100])
        explain(
            "lease",
            lease.LEASE.format(which=lease.THEIRS + " AND organization_id = ANY(%(o)s)"),
            {"o": [cast.organization.id], "owner": "x", "limit": 50, "seconds": 60},
        )
        explain("queue without", queue.WAITING, [20])
        c.execute(
            "CREATE INDEX q ON attempts_attempt (organization_id, workflow_slug, id) WHERE queued_until IS NOT NULL"
        )
        c.execute("ANALYZE attempts_attempt")
        explain("queue with", queue.WAITING, [20])
        with every_tenant():
            pass
        c.execute("ALTER TABLE attempts_attempt DISABLE TRIGGER legal_moves")
        c.execute("DELETE FROM attempts_attempt WHERE id <> %s", [a])
        c.execute("ALTER TABLE attempts_attempt ENABLE ALWAYS TRIGGER legal_moves")
        c.execute("DROP INDEX q")
