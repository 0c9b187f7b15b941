"""Sends the conformance kit's messages to a module, through the same guard as everything that leaves Holdpoint."""

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx

from governance.outside.http import AddressRefused, GuardedBackend, guarded_client, url_check
from sdk.conformance.messages import ModuleAnswer, Request
from sdk.conformance.probes import AT_ONCE

READ_LIMIT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ModuleSender:
    url: str
    seconds: float
    allow_private: bool = False

    def private_hosts(self, url: str) -> frozenset[str]:
        """Only the host and port that the operator named, and only because they said so."""
        parsed = httpx.URL(url)
        port = parsed.port or (443 if parsed.scheme == "https" else 80)
        return frozenset({f"{parsed.host.lower()}:{port}"}) if self.allow_private else frozenset()

    def send(self, requests: list[Request]) -> list[ModuleAnswer]:
        if len(requests) == 1:
            return [self._one(requests[0])]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(self._one, requests))

    def _one(self, request: Request) -> ModuleAnswer:
        """A refused address is raised; anything that a module does is an answer."""
        headers = [(name.encode(), value.encode()) for name, value in request.headers.items()]
        return self._exchange("POST", self.url, content=request.body, headers=headers)

    def effects(self, url: str) -> Mapping[str, Any]:
        """What the module says about itself; nothing readable counts as nothing done."""
        answer = self._exchange("GET", url)
        try:
            found = json.loads(answer.body) if answer.taken else None
        except ValueError:
            found = None
        return found if isinstance(found, dict) else {}

    def _exchange(self, method: str, url: str, **what: Any) -> ModuleAnswer:
        private, began = self.private_hosts(url), time.monotonic()
        url_check(url, private_hosts=private)
        try:
            with (
                guarded_client(GuardedBackend(private_hosts=private, seconds=self.seconds)) as client,
                client.stream(method, url, **what) as response,
            ):
                return ModuleAnswer(response.status_code, _read(response), time.monotonic() - began)
        except AddressRefused:
            raise
        except (httpx.HTTPError, OSError):
            return ModuleAnswer(0, seconds=time.monotonic() - began)


def _read(response: httpx.Response) -> bytes:
    found = b""
    for chunk in response.iter_raw():
        found += chunk
        if len(found) > READ_LIMIT_BYTES:
            break
    return found[:READ_LIMIT_BYTES]
