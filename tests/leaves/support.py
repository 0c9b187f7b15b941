"""What the tests of single settings share: an open contract in which one leaf differs from the default documents."""

from typing import Any

from attempts.lifecycle.models import Attempt
from governance.contracts.models import Contract
from governance.contracts.rules.documents import default_documents
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governed import open_contract

URL = "/api/v1/execution/{slug}/1/attempts"


def changed(area: str, **fields: Any) -> dict[str, Any]:
    """The default documents with these fields of one area."""
    documents = default_documents()
    documents[area] |= fields
    return documents


def inner(area: str, part: str, **fields: Any) -> dict[str, Any]:
    """The same one level deeper."""
    return changed(area, **{part: default_documents()[area][part] | fields})


def opened(cast: Cast, documents: dict[str, Any], **core: Any) -> Contract:
    return open_contract(cast, documents=documents, **core)


def ask(client: Any, number: int = 1, *, slug: str = "close-case", key: str | None = None, **changes: Any) -> Any:
    """One request; `number` makes key and context. Headers are given in capitals."""
    headers = {name: changes.pop(name) for name in list(changes) if name.startswith("HTTP_")}
    if key != "":
        headers["HTTP_IDEMPOTENCY_KEY"] = key or f"key-{number:08}"
    action = {
        "connector": "external",
        "operation": "case.close",
        "target_ref": f"case-{number:04}",
        "risk_tier": "low",
        "payload_ref": f"payload-{number:04}",
        "payload_sha256": "ab" * 32,
        "fields": ["status"],
    } | changes.pop("action", {})
    body = {"patient_context_ref": f"ctx-{number:04}", "runtime_mode": "active", "action": action, "metadata": {}}
    body |= changes
    return client.post(
        URL.format(slug=slug), {k: v for k, v in body.items() if v is not None}, format="json", **headers
    )


def said(answer: Any) -> tuple[int, str]:
    """Status and reason code, or the kind of problem where there is no code."""
    found = answer.json()
    return answer.status_code, found.get("reason_code") or str(found.get("type", "")).rsplit("/", 1)[-1]


def attempt_of(answer: Any) -> Attempt:
    with every_tenant():
        return Attempt.objects.get(id=answer.json().get("id") or answer.json()["attempt_id"])
