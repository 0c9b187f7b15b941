"""The messages that probes send to a module, in the two forms that Holdpoint sends, with their signatures."""

import base64
import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

from workflows.events.rules import stamp


class MessageForm(StrEnum):
    """`call`: the signed request of the `http` adapter. `webhook`: a notice with ids only."""

    CALL = "call"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class ModuleMessage:
    """`key` is what a module must deduplicate on: the `Idempotency-Key` of a call, the id of a webhook."""

    id: str
    key: str
    document: Mapping[str, Any]
    form: MessageForm

    @property
    def body(self) -> bytes:
        return json.dumps(self.document, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Request:
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ModuleAnswer:
    """`status` 0: no answer in time, or the connection broke."""

    status: int
    body: bytes = field(default=b"", repr=False)
    seconds: float = 0.0

    @property
    def taken(self) -> bool:
        return 200 <= self.status < 300

    def __str__(self) -> str:
        return str(self.status) if self.status else "no answer"


@dataclass(frozen=True, slots=True)
class Kit:
    """Makes and signs the messages of one run of the kit."""

    secret: bytes
    form: MessageForm
    run: UUID
    clock: Callable[[], datetime]
    organization: str = "conformance"

    def message(self, name: str, **changes: Any) -> ModuleMessage:
        # Ids depend on the run: a module that remembers the last run would otherwise see only duplicates.
        id_ = str(uuid5(self.run, name))
        key = f"hp-{uuid5(self.run, name + '/effect').hex}" if self.form is MessageForm.CALL else id_
        made = call_document(self, id_, key) if self.form is MessageForm.CALL else webhook_document(self, name)
        return ModuleMessage(id_, key, {**made, **changes}, self.form)

    def sign(self, message: ModuleMessage, *, age: timedelta = timedelta(0), secrets: Iterable[bytes] = ()) -> Request:
        """The request as Holdpoint would send it, signed `age` ago."""
        at = str(int((self.clock() - age).timestamp()))
        keys = [*secrets] or [self.secret]
        made = [signature(key, message.id, at, message.body) for key in keys]
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "holdpoint-conformance",
            "webhook-id": message.id,
            "webhook-timestamp": at,
            "webhook-signature": " ".join(made),
        }
        own = {"Idempotency-Key": message.key} if message.form is MessageForm.CALL else {}
        return Request(message.body, headers | own)


def signature(key: bytes, id_: str, at: str, body: bytes) -> str:
    """A signature of Standard Webhooks, version 1."""
    # Id, time and body together: none of them can be exchanged for that of another signed message.
    signed = b".".join([id_.encode(), at.encode(), body])
    return "v1," + base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()


def secret_bytes(text: str) -> bytes:
    """The secret from its notation `whsec_…`. Raises ValueError."""
    found = base64.b64decode(text.strip().removeprefix("whsec_"), validate=True)
    if len(found) < 16:
        raise ValueError("too short")
    return found


def with_headers(request: Request, **changes: str | None) -> Request:
    """The request with other header values; None removes one. `_` stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in changes.items()}
    kept = {name: value for name, value in request.headers.items() if name not in named}
    return replace(request, headers=kept | {name: value for name, value in named.items() if value is not None})


def call_document(kit: Kit, id_: str, key: str) -> dict[str, Any]:
    """The body of a call. A test compares its fields with those that the `http` adapter sends."""
    return {
        "attempt_id": id_,
        "organization": kit.organization,
        "workflow_slug": "conformance-check",
        "contract_version": 1,
        "operation": "conformance.check",
        "target_ref": f"conformance-{id_[:8]}",
        "payload_ref": f"conformance/{id_[:8]}",
        "payload_sha256": sha256(id_.encode()).hexdigest(),
        "fields": ["status"],
        "effect_key": key,
        "metadata": {},
    }


def webhook_document(kit: Kit, name: str) -> dict[str, Any]:
    ids = {field_: str(uuid5(kit.run, f"{name}/{field_}")) for field_ in ("case_id", "instance_id", "definition_id")}
    data = {"organization_id": str(kit.run), **ids, "status": "running", "mode": "active"}
    return {"type": "workflow.started", "timestamp": stamp(kit.clock()), "data": data}


def completed(message: ModuleMessage, started: ModuleMessage) -> ModuleMessage:
    """The notice that the run whose start `started` reports has ended."""
    kept = ("organization_id", "case_id", "instance_id")
    data = {name: started.document["data"][name] for name in kept} | {"status": "completed"}
    return replace(message, document={**message.document, "type": "workflow.completed", "data": data})
