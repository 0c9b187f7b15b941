"""What an evaluation may use besides the context: the moment and two identifiers for `sample`. Both are passed in,
because a replay must get the same result."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from governance.conditions.errors import ConditionScopeError, ConditionTimeError

SAMPLE_PREFIX: Final = "holdpoint-sample-v1\n"
SALTED_PREFIX: Final = "holdpoint-sample-v2\n"
MAX_IDENTIFIER_CHARACTERS: Final = 200
MAX_SALT_CHARACTERS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationScope:
    """The moment and the identity of one evaluation; `now` is kept in UTC."""

    now: datetime
    case_id: str
    definition_id: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "now", _in_utc(self.now))
        _check_identifier(self.case_id, name="case_id")
        _check_identifier(self.definition_id, name="definition_id")


def sample_number(*, definition_id: str, case_id: str, salt: str = "") -> int:
    """A number for this case under this definition: unsigned, 64 bits, evenly distributed, and always the same. With
    another salt it is independent of the first."""
    # A hash and not a random number: a replay, and a caller who asks again, must get the same result.
    # A prefix of its own for salted numbers, so that no salt gives the number of another case.
    start, end = (SALTED_PREFIX, f"\n{salt}") if salt else (SAMPLE_PREFIX, "")
    text = f"{start}{definition_id}\n{case_id}{end}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _in_utc(moment: datetime) -> datetime:
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise ConditionTimeError("the scope's now must be a datetime with a time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ConditionTimeError("the scope's now is outside the calendar") from None


def _check_identifier(value: str, *, name: str) -> None:
    # A line break separates the identifiers in the hashed text. Inside one, two different pairs could hash alike.
    usable = isinstance(value, str) and 0 < len(value) <= MAX_IDENTIFIER_CHARACTERS and value.isprintable()
    if not usable:
        raise ConditionScopeError(f"{name} must be 1 to {MAX_IDENTIFIER_CHARACTERS} printable characters on one line")
