"""Everything that a decision may depend on besides the request. Filled by `governance/enforcement/services.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Environment:
    """`facts` is stored with each decision. The snapshots are stored once; `facts` names them by SHA-256."""

    facts: Mapping[str, Any]
    contract: Mapping[str, Any] | None
    policy: Mapping[str, Any] | None
    region: Mapping[str, Any] | None
