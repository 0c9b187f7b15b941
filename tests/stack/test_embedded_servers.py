"""PostgreSQL and Valkey from the wheels: start, adopt, stop, and what kill -9 leaves."""

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from config.embedded.accounts import account_for, popen_options
from config.embedded.errors import EmbeddedServerError
from config.embedded.paths import SOCKET_FOLDER_LIMIT, StackPaths
from config.embedded.postgres import PostgresServer
from config.embedded.postgres_cluster import APPLICATION_ROLE, OWNER_ROLE, SUPERUSER, binaries
from config.embedded.valkey import ValkeyServer
from tests.stack.support import processes_of, wait_for

pytestmark = pytest.mark.stack


@pytest.fixture
def paths(home: Path) -> StackPaths:
    return StackPaths.from_setting(value=str(home))


@pytest.fixture
def postgres(paths: StackPaths) -> Iterator[PostgresServer]:
    server = PostgresServer(paths=paths)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def valkey(paths: StackPaths) -> Iterator[ValkeyServer]:
    server = ValkeyServer(paths=paths)
    server.start()
    yield server
    server.stop()


def ask(server: PostgresServer, statement: str, *, role: str = OWNER_ROLE) -> list[tuple[object, ...]]:
    with psycopg.connect(server.url(role=role), connect_timeout=5) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def pid_of(server: PostgresServer | ValkeyServer) -> int:
    process = server.process()
    assert process is not None
    return int(process.pid)


def kill_9(server: PostgresServer | ValkeyServer) -> None:
    pid = pid_of(server)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not server.alive(), seconds=5, what=f"{pid} gone")


def test_both_servers_answer_and_stop_without_leaving_a_process(
    home: Path, postgres: PostgresServer, valkey: ValkeyServer
) -> None:
    with redis.Redis.from_url(valkey.url()) as client:
        assert client.ping()
    assert ask(postgres, "SELECT current_user, current_database()") == [(OWNER_ROLE, "holdpoint")]

    valkey.stop()
    postgres.stop()

    assert processes_of(home) == []
    assert not valkey.alive()
    assert not postgres.alive()


def test_a_second_start_adopts_the_running_servers(
    paths: StackPaths, postgres: PostgresServer, valkey: ValkeyServer
) -> None:
    for first, second in ((postgres, PostgresServer(paths=paths)), (valkey, ValkeyServer(paths=paths))):
        before = pid_of(first)
        second.start()
        assert pid_of(second) == before


def test_nothing_listens_on_the_network(postgres: PostgresServer, valkey: ValkeyServer) -> None:
    for server in (postgres, valkey):
        assert psutil.Process(pid_of(server)).net_connections(kind="inet") == []


def test_sockets_and_data_are_closed_to_other_accounts(
    paths: StackPaths, postgres: PostgresServer, valkey: ValkeyServer
) -> None:
    beyond = (paths.postgres_data, paths.postgres_sockets, paths.valkey_data, paths.logs, paths.valkey_socket)
    for path in (*beyond, paths.postgres_sockets / ".s.PGSQL.5432"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    # As root, PostgreSQL's account may pass through these two, but nobody may list them.
    for path in (paths.home, paths.run):
        assert stat.S_IMODE(path.stat().st_mode) & 0o066 == 0, path


def test_only_the_account_that_runs_holdpoint_can_connect(postgres: PostgresServer, paths: StackPaths) -> None:
    """As root the server runs as another account, which owns the socket's folder; that account is no role either."""
    for role in (SUPERUSER, OWNER_ROLE, APPLICATION_ROLE):
        assert ask(postgres, "SELECT current_user", role=role) == [(role,)]
    rules = (paths.postgres_data / "holdpoint_hba.conf").read_text().split()
    assert rules == ["local", "all", "all", "peer", "map=holdpoint"]
    assert ask(postgres, "SHOW hba_file", role=SUPERUSER) == [(str(paths.postgres_data / "holdpoint_hba.conf"),)]
    account = account_for(data=paths.postgres_data)
    if account is None:
        return  # not root: the server runs as ourselves, and the socket is closed to everybody else
    for role in (SUPERUSER, OWNER_ROLE, APPLICATION_ROLE):
        done = subprocess.run(
            [str(binaries() / "psql"), "-X", "-At", "-c", "SELECT current_user", postgres.url(role=role)],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            **popen_options(account),
        )
        assert done.returncode == 2, done.stdout
        assert "Peer authentication failed" in done.stderr


def test_the_application_role_can_create_nothing(postgres: PostgresServer) -> None:
    ask(postgres, "CREATE TABLE mine (id int)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(postgres, "CREATE TABLE theirs (id int)", role=APPLICATION_ROLE)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(postgres, "SELECT * FROM mine", role=APPLICATION_ROLE)


def test_the_server_log_holds_no_row_values(postgres: PostgresServer) -> None:
    ask(postgres, "CREATE TABLE held (id text PRIMARY KEY)")
    ask(postgres, "INSERT INTO held VALUES ('row-value-4711')")
    with pytest.raises(psycopg.errors.UniqueViolation, match="row-value-4711"):  # the client is told
        ask(postgres, "INSERT INTO held VALUES ('row-value-4711')")
    text = postgres.log.read_text()
    assert "held_pkey" in text
    assert "row-value-4711" not in text


def test_kill_9_loses_nothing_that_was_committed(postgres: PostgresServer, valkey: ValkeyServer) -> None:
    ask(postgres, "CREATE TABLE kept (word text)")
    ask(postgres, "INSERT INTO kept VALUES ('still here')")
    with redis.Redis.from_url(valkey.url()) as client:
        client.set("kept", "still here")

    kill_9(postgres)
    kill_9(valkey)
    postgres.start()
    valkey.start()

    assert ask(postgres, "SELECT word FROM kept") == [("still here",)]
    with redis.Redis.from_url(valkey.url()) as client:
        assert client.get("kept") == b"still here"


def test_a_pid_file_whose_number_was_reused_does_not_prevent_the_start(
    paths: StackPaths, postgres: PostgresServer
) -> None:
    kill_9(postgres)
    # PostgreSQL itself takes any living process of its own account for a running server.
    account = account_for(data=paths.postgres_data)
    stranger = subprocess.Popen(["sleep", "60"], cwd="/", **popen_options(account))
    try:
        for file in (paths.postgres_data / "postmaster.pid", paths.postgres_sockets / ".s.PGSQL.5432.lock"):
            lines = file.read_text().splitlines()
            file.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        assert not postgres.alive()
        postgres.stop()
        postgres.start()

        assert pid_of(postgres) != stranger.pid
        assert stranger.poll() is None, "a process that is not ours must be left alone"
    finally:
        stranger.kill()
        stranger.wait()


def test_an_initdb_cut_short_is_done_again(paths: StackPaths) -> None:
    paths.create()
    half_done = paths.home / "postgres.new"
    half_done.mkdir()
    (half_done / "PG_VERSION").write_text("18\n")

    server = PostgresServer(paths=paths)
    server.start()
    try:
        assert ask(server, "SELECT 1") == [(1,)]
        assert not half_done.exists()
    finally:
        server.stop()


def test_data_of_another_major_version_is_refused_in_one_line(postgres: PostgresServer, paths: StackPaths) -> None:
    postgres.stop()
    (paths.postgres_data / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedServerError, match="holds data of PostgreSQL 17") as caught:
        postgres.start()
    assert "\n" not in str(caught.value)


def test_a_stopped_server_that_sleeps_is_woken_and_ended(postgres: PostgresServer) -> None:
    os.kill(pid_of(postgres), signal.SIGSTOP)
    postgres.stop()
    assert not postgres.alive()
    assert "database system is shut down" in postgres.log.read_text(), "it was cut off instead of ended"


def test_a_home_with_a_long_path_keeps_its_sockets_elsewhere(home: Path) -> None:
    paths = StackPaths.from_setting(value=str(home / ("long" * 20)))
    assert len(str(paths.run)) > SOCKET_FOLDER_LIMIT
    postgres, valkey = PostgresServer(paths=paths), ValkeyServer(paths=paths)
    try:
        postgres.start()
        valkey.start()
        assert ask(postgres, "SELECT 1") == [(1,)]
        assert not paths.sockets.is_relative_to(home)
        assert stat.S_IMODE(paths.sockets.stat().st_mode) & 0o066 == 0
    finally:
        valkey.stop()
        postgres.stop()
        for left in (paths.postgres_sockets, paths.sockets):
            left.rmdir()
