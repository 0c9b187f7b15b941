"""PostgreSQL and Valkey of a stack: the user's own if DATABASE_URL or REDIS_URL is set, else embedded ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from config.embedded import postgres_cluster, valkey
from config.embedded.paths import StackPaths
from config.embedded.postgres import PostgresServer
from config.embedded.valkey import ValkeyServer


@dataclass(kw_only=True)
class Servers:
    """The addresses, and the servers that we run ourselves, in the order of starting."""

    database_url: str
    database_owner_url: str
    redis_url: str
    embedded: list[PostgresServer | ValkeyServer] = field(default_factory=list)

    @property
    def application_role(self) -> str:
        """The role that needs rights on the owner's tables; empty if the application is the owner."""
        if self.database_url == self.database_owner_url:
            return ""
        return urlsplit(self.database_url).username or ""

    def start(self) -> None:
        for server in self.embedded:
            server.rotate_log()
            server.start()

    def stop(self) -> None:
        """In reverse order."""
        failures = []
        for server in reversed(self.embedded):
            try:
                server.stop()
            # A server that does not end must not keep the others running.
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]


def choose_servers(
    *,
    paths: StackPaths,
    environ: Mapping[str, str],
    fast: bool = False,
    notice: Callable[[str], None] = lambda text: None,
) -> Servers:
    """Decides for each server whether it is the user's or ours. `fast` gives up durability, for tests."""
    postgres = PostgresServer(
        paths=paths,
        settings=postgres_cluster.FAST_SETTINGS if fast else postgres_cluster.DURABLE_SETTINGS,
        notice=notice,
    )
    broker = ValkeyServer(paths=paths, settings=valkey.FAST_SETTINGS if fast else valkey.DURABLE_SETTINGS)
    servers = Servers(
        database_url=postgres.url(role=postgres_cluster.APPLICATION_ROLE),
        database_owner_url=postgres.url(role=postgres_cluster.OWNER_ROLE),
        redis_url=broker.url(),
    )
    if environ.get("DATABASE_URL"):
        servers.database_url = environ["DATABASE_URL"]
        servers.database_owner_url = environ.get("DATABASE_OWNER_URL") or environ["DATABASE_URL"]
    else:
        servers.embedded.append(postgres)
    if environ.get("REDIS_URL"):
        servers.redis_url = environ["REDIS_URL"]
    else:
        servers.embedded.append(broker)
    return servers


def stop_leftover_servers(*, paths: StackPaths) -> None:
    """Ends embedded servers of this folder that outlived their supervisor."""
    if paths.home.exists():
        ValkeyServer(paths=paths).stop()
        PostgresServer(paths=paths).stop()
