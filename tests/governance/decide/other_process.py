"""A second process with its own connection and caches, for what must hold on every process without a restart."""

import json
from multiprocessing.connection import Connection
from typing import Any

from django.test import Client

from tests.processes import FORKED, ended, start


class OtherProcess:
    """Asks for actions from another process, over the same test database."""

    def __init__(self, *, secret: str) -> None:
        self.secret = secret
        self.pipe, theirs = FORKED.Pipe()
        self.process = start(answer, theirs)
        theirs.close()

    def ask(self, url: str, body: dict[str, Any], *, key: str) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {self.secret}", "Idempotency-Key": key}
        self.pipe.send((url, json.dumps(body), headers))
        status, found = self.pipe.recv()
        return status, found

    def stop(self) -> None:
        self.pipe.close()
        assert ended(self.process) == 0


def answer(pipe: Connection) -> None:
    """One request after the other, until there is nobody left who asks."""
    client = Client(raise_request_exception=False)
    while True:
        try:
            url, body, headers = pipe.recv()
        except EOFError:
            return
        found = client.post(url, body, content_type="application/json", headers=headers)
        pipe.send((found.status_code, found.json()))
