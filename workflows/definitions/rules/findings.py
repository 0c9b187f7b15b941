"""A finding about a definition: rule, pointer, message, and the name that was probably meant."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from governance.boundary.rules.keys import key_facts

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,127}")


@dataclass(frozen=True, slots=True)
class DefinitionFinding:
    rule: str
    pointer: str
    message: str
    suggestion: str = ""

    def as_json(self) -> dict[str, str]:
        fields = {"rule": self.rule, "pointer": self.pointer, "message": self.message}
        return fields | {"suggestion": self.suggestion} if self.suggestion else fields


def nearest(name: object, names: Iterable[str]) -> str:
    """The valid name most like this one, or nothing."""
    if not isinstance(name, str):
        return ""
    exact = sorted(names)
    folded = {known.lower(): known for known in exact}
    if name.lower() in folded:
        return folded[name.lower()]
    near = get_close_matches(name[:128], exact, n=1, cutoff=0.6)
    return near[0] if near else ""


def is_plain(name: object) -> bool:
    """Whether a submitted name is a plain identifier that no detector objects to: only then may a message repeat it."""
    return isinstance(name, str) and _IDENTIFIER.fullmatch(name) is not None and not key_facts(name).rules


def quoted(name: object) -> str:
    """The submitted name if it may be repeated."""
    return f"'{name}'" if is_plain(name) else "this"


def did_you_mean(suggestion: str) -> str:
    return f" Did you mean '{suggestion}'?" if suggestion else ""
