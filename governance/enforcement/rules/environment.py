"""Everything a decision may depend on besides the request, put together by the shell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Environment:
    """`facts` is stored with each decision; the snapshots are stored once, and facts names them by SHA-256."""

    facts: Mapping[str, Any]
    contract: Mapping[str, Any] | None
    policy: Mapping[str, Any] | None
    region: Mapping[str, Any] | None
