"""A witness behind a URL: POST stores a head, GET returns the newest, GET `?after=<size>` those after a size
(docs/ledger.md)."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from governance.outside.http import AddressRefused, GuardedBackend, guarded_client, url_check
from governance.sealing.adapters.base import WitnessFailed

# For a whole exchange. The check at the start of every process waits for it.
SECONDS = 5.0
# A witness is a foreign system: its answer must not fill this process' memory.
READ_LIMIT_BYTES = 4 * 1024 * 1024
TEXT = "text/plain; charset=utf-8"


class HttpWitness:
    """The configured host may have a private address and use plain http, because an operator configured it."""

    def __init__(self, *, name: str, url: str, token: str = "") -> None:
        self.name = name
        self.url = url
        self.token = token

    def push(self, text: str, *, size: int, epoch: int) -> None:
        status, _ = self._ask("POST", text.encode(), {})
        if not 200 <= status < 300:
            raise WitnessFailed(f"http_{status}", refused=status in {409, 422})

    def newest(self) -> list[str]:
        status, body = self._ask("GET", b"", {})
        if status == 404:
            return []
        if status != 200:
            raise WitnessFailed(f"http_{status}")
        return _texts(body)

    def heads(self) -> Iterator[str]:
        """Page by page. A witness without pages returns its newest head, and nothing else."""
        after = 0
        seen: set[str] = set()
        while True:
            found = self.page(after=after)
            fresh = [text for text in found if text not in seen]
            yield from fresh
            seen = set(found)
            largest = max((_size(text) for text in fresh), default=0)
            # No progress is the end: a witness that ignores `after` would otherwise be asked for ever.
            if largest <= after:
                return
            after = largest

    def page(self, *, after: int) -> list[str]:
        """Some heads after a size, the oldest first."""
        status, body = self._ask("GET", b"", {"after": str(after)})
        if status not in {200, 404}:
            raise WitnessFailed(f"http_{status}")
        return _texts(body) if status == 200 else []

    def _ask(self, method: str, body: bytes, query: dict[str, str]) -> tuple[int, bytes]:
        return exchange(method, self.url, body=body, query=query, token=self.token)


def exchange(
    method: str, url: str, *, body: bytes = b"", query: dict[str, str] | None = None, token: str = ""
) -> tuple[int, bytes]:
    """Status and body of one answer. Raises WitnessFailed if there is none."""
    backend = GuardedBackend(private_hosts=_named(url), seconds=SECONDS)
    headers = {"User-Agent": "holdpoint", "Content-Type": TEXT, "Accept": "application/jsonl, text/plain"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        url_check(url, private_hosts=backend.private_hosts)
        with (
            guarded_client(backend) as client,
            client.stream(method, url, content=body or None, params=query or None, headers=headers) as response,
        ):
            return response.status_code, _limited(response)
    except AddressRefused as error:
        raise WitnessFailed("address_refused") from error
    except (httpx.HTTPError, httpx.InvalidURL, socket.gaierror, OSError) as error:
        raise WitnessFailed(f"http_{type(error).__name__}"[:64]) from error


def _named(url: str) -> frozenset[str]:
    """Host and port of the URL, as the only private host that may be called."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return frozenset({f"{(parts.hostname or '').lower()}:{port}"})


def _limited(response: httpx.Response) -> bytes:
    found = b""
    # Counted while it arrives, after decompression: a length in a header could be false.
    for chunk in response.iter_bytes():
        found += chunk
        if len(found) > READ_LIMIT_BYTES:
            raise WitnessFailed("answer_too_long")
    return found


def _texts(body: bytes) -> list[str]:
    """The heads in an answer: one as text, or one per line of JSON."""
    text = body.decode(errors="replace")
    if not text.lstrip().startswith("{"):
        return [text] if text.strip() else []
    found = []
    for line in text.splitlines():
        try:
            found.append(str(json.loads(line)["checkpoint"]))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _size(text: str) -> int:
    lines = text.split("\n", 2)
    return int(lines[1]) if len(lines) > 1 and lines[1].isdecimal() else 0
