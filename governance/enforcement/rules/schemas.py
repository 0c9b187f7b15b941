"""JSON Schemas of requests and facts. They check types and names; evaluators judge what the values mean."""

from typing import Any, Final

from governance.boundary.rules.editions import EDITIONS
from governance.contracts.rules.documents import ENVELOPE_FIELDS
from governance.enforcement.rules.names import (
    ACTS,
    ENVIRONMENT_FORMAT,
    EVALUATORS,
    REPEATED_REFERENCES,
    REQUEST_FORMAT,
    RISK_TIERS,
    UNIQUE_REFERENCES,
)

Schema = dict[str, Any]

_LONGEST = 1024
_YEAR = 366 * 86_400
TEXT: Final[Schema] = {"type": "string", "maxLength": _LONGEST}
_TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"], "maxLength": _LONGEST}
VERSION: Final[Schema] = {"type": ["string", "integer"], "maxLength": 64, "minimum": 0, "maximum": 2**53 - 1}
_SECONDS: Final[Schema] = {"type": ["integer", "null"], "minimum": 0, "maximum": _YEAR}
# The boundary does not inspect these fields, because Holdpoint fills them in. The pattern allows no space, so even a
# value that a caller got in could not be a sentence.
_WORD_OR_NULL: Final[Schema] = {"type": ["string", "null"], "pattern": "^[!-~]{0,256}$"}
_SHA256: Final[Schema] = {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"}


def _closed(properties: dict[str, Schema], *, required: list[str]) -> Schema:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def _texts(most: int) -> Schema:
    return {"type": "array", "maxItems": most, "items": TEXT}


_ENVELOPE: Final = _closed(
    {
        **dict.fromkeys(ENVELOPE_FIELDS, _WORD_OR_NULL),
        **{name: _TEXT_OR_NULL for part, name in (*REPEATED_REFERENCES, *UNIQUE_REFERENCES) if part == "envelope"},
        "contract_version": {**VERSION, **_WORD_OR_NULL, "type": ["string", "integer", "null"]},
        # The contract says which of these words are allowed.
        "runtime_mode": {"type": ["string", "null"], "pattern": "^[a-z_]{1,32}$"},
    },
    required=[],
)
_ACTION_FIELDS: Final[dict[str, Schema]] = {
    "connector": TEXT,
    "operation": TEXT,
    "target_ref": _TEXT_OR_NULL,
    "risk_tier": {"enum": list(RISK_TIERS)},
    "payload_ref": _TEXT_OR_NULL,
    "payload_sha256": _SHA256,
    "fields": _texts(100),
}
_PLACES: Final[Schema] = {
    "type": "array",
    "minItems": 1,
    "maxItems": 1000,
    "items": _closed({"pointer": {"type": "string"}, "rule": {"type": "string"}}, required=["pointer", "rule"]),
}
_FORMAT: Final[Schema] = {"const": REQUEST_FORMAT}

# A request as it was made.
REQUEST_SCHEMA: Final = _closed(
    {
        "format": _FORMAT,
        "envelope": _ENVELOPE,
        "action": _closed(_ACTION_FIELDS, required=["connector", "operation", "risk_tier"]),
        "metadata": {"type": "object"},
        "withheld": {"type": "array", "maxItems": 0},
    },
    required=["format", "envelope", "action", "metadata"],
)
# A request that may be stored although the boundary refused it.
WITHHELD_SCHEMA: Final = _closed(
    {
        "format": _FORMAT,
        "envelope": _ENVELOPE,
        "action": _closed(_ACTION_FIELDS, required=["risk_tier"]),
        "withheld": _PLACES,
    },
    required=["format", "envelope", "action", "withheld"],
)
# All that may be stored of a request of the wrong shape.
MALFORMED_SCHEMA: Final = _closed({"format": _FORMAT, "malformed": _PLACES}, required=["format", "malformed"])

_ORGANIZATION: Final = _closed(
    {"id": TEXT, "status": TEXT, "regions": _texts(50)}, required=["id", "status", "regions"]
)
_CALLER: Final = _closed(
    {"kind": TEXT, "id": TEXT, "status": TEXT, "scopes": _texts(100)}, required=["id", "status", "scopes"]
)
_SHUTDOWN: Final = _closed(
    {"id": TEXT, "scope": TEXT, "target": _TEXT_OR_NULL, "drill": {"type": "boolean"}}, required=["id", "scope"]
)
_COUNT: Final = {"type": "integer", "minimum": 0}
# Which cap or throttle refused, its size and its use. Older environments do not have it.
_CAP: Final = _closed(
    {"name": TEXT, "limit": _COUNT, "used": _COUNT, "window_seconds": _COUNT}, required=["name", "limit", "used"]
)
_THROTTLE: Final = _closed(
    {"status": _TEXT_OR_NULL, "exceeded": _TEXT_OR_NULL, "retry_after": _SECONDS, "cap": _CAP}, required=["status"]
)
_CONCURRENCY: Final = _closed(
    {
        "status": _TEXT_OR_NULL,
        "busy": _TEXT_OR_NULL,
        "when_busy": _TEXT_OR_NULL,
        "retry_after": _SECONDS,
        "cap": _CAP,
    },
    required=["status"],
)
FACTS_SCHEMA: Final = _closed(
    {
        "format": {"const": ENVIRONMENT_FORMAT},
        "at": {
            "type": "string",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+]00:00)$",
        },
        "contract_state": _TEXT_OR_NULL,
        "contract_sha256": _SHA256,
        "policy_sha256": _SHA256,
        "region_sha256": _SHA256,
        "deployment_region": _TEXT_OR_NULL,
        # The detectors' edition. Absent in environments from before editions existed: the first.
        "boundary_edition": {"enum": list(EDITIONS)},
        # Absent without a standby, and in environments from before standbys were declared.
        "standby_regions": _texts(50),
        "organization": _ORGANIZATION,
        "caller": _CALLER,
        "shutdowns": {"type": "array", "maxItems": 10_000, "items": _SHUTDOWN},
        "throttle": _THROTTLE,
        "concurrency": _CONCURRENCY,
        # How often the same effect was asked for under other keys. Only where the contract asks for its identity.
        "effect": _closed(
            {"asked_before": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}}, required=["asked_before"]
        ),
        # Before what it was decided again. Decisions about a request that came in do not have it.
        "act": {"enum": list(ACTS)},
        "failures": {
            "type": "object",
            "propertyNames": {"enum": list(EVALUATORS)},
            "additionalProperties": {"type": "string", "pattern": "^(timeout|raised(:[A-Za-z_][A-Za-z0-9_]{0,99})?)$"},
        },
    },
    required=[
        "format",
        "at",
        "contract_state",
        "deployment_region",
        "organization",
        "caller",
        "shutdowns",
        "throttle",
        "concurrency",
    ],
)
