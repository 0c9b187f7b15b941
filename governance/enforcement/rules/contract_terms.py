"""The parts of a contract's snapshot that the evaluators read, compiled."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from governance.boundary.rules import BoundaryPolicy
from governance.contracts.rules.documents import KEY_CHARSETS, REFERENCE_FORMATS
from governance.enforcement.rules.names import CONTRACT_FORMAT, RISK_TIERS
from governance.enforcement.rules.schemas import TEXT, VERSION, Schema
from governance.enforcement.rules.shape import validator
from governance.enforcement.rules.snapshots import SnapshotMalformed


def _object(properties: dict[str, Schema]) -> Schema:
    """An object schema that allows other fields: only what is read here is checked, so that snapshots with older or
    newer fields can still be replayed."""
    return {"type": "object", "required": list(properties), "properties": properties}


_TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
_LENGTH: Final[Schema] = {"type": "integer", "minimum": 1}
_REFERENCE: Final = _object({"format": {"enum": list(REFERENCE_FORMATS)}, "max_length": _LENGTH})
_KEY: Final = _object({"min_length": _LENGTH, "max_length": _LENGTH, "charset": {"enum": list(KEY_CHARSETS)}})
CONTRACT_SCHEMA: Final = _object(
    {
        "format": {"const": CONTRACT_FORMAT},
        "organization_id": TEXT,
        "slug": TEXT,
        "version": VERSION,
        "effect": TEXT,
        "risk_tier": {"enum": list(RISK_TIERS)},
        "adapter": TEXT,
        "policy_slug": {"type": ["string", "null"]},
        "documents": _object(
            {
                "attempt_identity_envelope": _object(
                    {
                        "required": _TEXTS,
                        "formats": _object({"request_trace_id": _REFERENCE, "patient_context_ref": _REFERENCE}),
                        "runtime_modes": _TEXTS,
                    }
                ),
                "idempotency_key_policy": _object({"key": _KEY}),
                "metadata_boundary": {"type": "object"},
                "regional_compliance": _object({"regions": _TEXTS}),
            }
        ),
    }
)
_VALIDATOR: Final = validator(CONTRACT_SCHEMA)


@dataclass(frozen=True, slots=True)
class TextShape:
    """The shape that a reference or key must have."""

    pattern: re.Pattern[str]
    shortest: int
    longest: int

    def fits(self, text: str) -> bool:
        return self.shortest <= len(text) <= self.longest and self.pattern.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class ContractTerms:
    organization_id: str
    slug: str
    version: str
    adapter: str
    risk_ceiling: int
    """The rank of the highest risk tier that an action under it may declare."""
    policy_slug: str | None
    required: tuple[str, ...]
    not_applicable: tuple[str, ...]
    """Fields that no attempt under it may have, because its owner declared them not applicable."""
    shapes: Mapping[str, TextShape]
    runtime_modes: frozenset[str]
    boundary: BoundaryPolicy
    regions: frozenset[str]
    on_repeat: str
    """What the same effect under another key gets: recognise, hold or refuse."""
    repeat_tier: str | None
    context: Mapping[str, Any]
    """What rules can read as `contract`."""


def version_text(version: Any) -> str:
    """A version as text for comparing: JSON does not distinguish 2 and 2.0."""
    return str(int(version)) if isinstance(version, int | float) else str(version)


def compile_contract(snapshot: dict[str, Any]) -> ContractTerms:
    """Raises SnapshotMalformed or BoundaryDocumentError."""
    if not _VALIDATOR.is_valid(snapshot):
        raise SnapshotMalformed
    documents = snapshot["documents"]
    envelope = documents["attempt_identity_envelope"]
    identity = documents["idempotency_key_policy"].get("effect_identity", {})
    return ContractTerms(
        organization_id=snapshot["organization_id"],
        slug=snapshot["slug"],
        version=version_text(snapshot["version"]),
        adapter=snapshot["adapter"],
        risk_ceiling=_risk_ceiling(snapshot),
        policy_slug=snapshot["policy_slug"],
        required=tuple(envelope["required"]),
        not_applicable=("patient_context_ref",) if envelope.get("patient_context") == "not_applicable" else (),
        shapes=_shapes(envelope["formats"], key=documents["idempotency_key_policy"]["key"]),
        runtime_modes=frozenset(envelope["runtime_modes"]),
        boundary=BoundaryPolicy.from_document(documents["metadata_boundary"]),
        regions=frozenset(documents["regional_compliance"]["regions"]),
        on_repeat=identity.get("on_repeat", "recognise"),
        repeat_tier=identity.get("tier"),
        context={name: snapshot[name] for name in ("slug", "version", "effect", "risk_tier", "adapter")},
    )


def _risk_ceiling(snapshot: Mapping[str, Any]) -> int:
    """Since a contract's tier is the least that a caller can declare, there is no ceiling. Snapshots from before keep
    theirs, because stored decisions must come out the same."""
    least = snapshot.get("risk_tier_is") == "least"
    return len(RISK_TIERS) - 1 if least else RISK_TIERS.index(snapshot["risk_tier"])


def _shapes(formats: Mapping[str, Any], *, key: Mapping[str, Any]) -> dict[str, TextShape]:
    shapes = {
        name: TextShape(re.compile(REFERENCE_FORMATS[formats[name]["format"]]), 1, formats[name]["max_length"])
        for name in ("request_trace_id", "patient_context_ref")
    }
    shapes["idempotency_key"] = TextShape(
        re.compile(KEY_CHARSETS[key["charset"]]), key["min_length"], key["max_length"]
    )
    return shapes
