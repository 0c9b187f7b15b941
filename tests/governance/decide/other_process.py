"""A second process with its own connection and caches, for what must hold on every process without a restart.

Run as a program it reads one JSON request per line and answers with one JSON line; `OtherProcess` drives it.
"""

import json
import os
import subprocess
import sys
from typing import Any


class OtherProcess:
    """Asks for actions from another process, over the same test database."""

    def __init__(self, *, database: str, secret: str) -> None:
        self.secret = secret
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.governance.decide.other_process", database],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.test"},
        )

    def ask(self, url: str, body: dict[str, Any], *, key: str) -> tuple[int, dict[str, Any]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"url": url, "body": body, "key": key, "secret": self.secret}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        status, answer = json.loads(self.process.stdout.readline())
        return status, answer

    def stop(self) -> None:
        self.process.communicate(timeout=10)


def main(database: str) -> None:
    import django
    from django.conf import settings

    django.setup()
    settings.DATABASES["default"]["NAME"] = database
    from django.db import connection
    from django.test import Client

    connection.settings_dict["NAME"] = database
    client = Client(raise_request_exception=False)
    for line in sys.stdin:
        request = json.loads(line)
        answer = client.post(
            request["url"],
            json.dumps(request["body"]),
            content_type="application/json",
            HTTP_AUTHORIZATION=f"Bearer {request['secret']}",
            HTTP_IDEMPOTENCY_KEY=request["key"],
        )
        sys.stdout.write(json.dumps([answer.status_code, answer.json()]) + "\n")
        sys.stdout.flush()
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1])
