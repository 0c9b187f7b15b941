"""Errors of conditions: one class per cause, each with a stable code. Messages name paths, kinds and positions, never a
value from the context, which may be sensitive."""

from typing import ClassVar, NamedTuple


class Position(NamedTuple):
    """A place in the source; both numbers start at 1 and columns count characters."""

    line: int
    column: int


class ConditionError(Exception):
    """Base of everything this package raises."""

    code: ClassVar[str] = "condition_error"

    # The message is the only positional argument: otherwise these errors could not be pickled between processes.
    def __init__(self, message: str, *, position: Position | None = None, source: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.source = source

    @property
    def line(self) -> int | None:
        return self.position.line if self.position else None

    @property
    def column(self) -> int | None:
        return self.position.column if self.position else None

    def __str__(self) -> str:
        if self.position is None:
            return self.message
        return f"{self.message} (line {self.position.line}, column {self.position.column})"

    def render(self) -> str:
        """The message, the source line it is about, and a caret under the column."""
        if self.position is None or self.source is None:
            return str(self)
        lines = self.source.split("\n")
        text = lines[self.position.line - 1].rstrip("\r") if self.position.line <= len(lines) else ""
        # Tabs are kept; otherwise the caret would be under another column.
        margin = "".join("\t" if char == "\t" else " " for char in text[: self.position.column - 1])
        margin = margin.ljust(self.position.column - 1)
        return f"{self}\n{text}\n{margin}^"


class ConditionSyntaxError(ConditionError):
    """The text is not a condition."""

    code = "condition_syntax"


class ConditionLimitError(ConditionError):
    """The text, a value it reads, or the work it asks for is over a limit."""

    code = "condition_limit"


class ConditionTypeError(ConditionError):
    """A value has a kind the operation does not take. Nothing is ever converted to make it fit."""

    code = "condition_type"


class ConditionTimeError(ConditionError):
    """A text compared with `now()` is no timestamp, or the scope's own time is unusable."""

    code = "condition_time"


class ConditionScopeError(ConditionError):
    """The scope's identifiers cannot be used for sampling."""

    code = "condition_scope"


class ConditionNumberError(ConditionError):
    """A calculation has no usable result: a division by zero, or a number that is too large."""

    code = "condition_number"


class MissingPathError(ConditionError):
    """The context has no value at this path and nothing stood ready to receive its absence."""

    code = "condition_missing_path"

    def __init__(
        self,
        message: str,
        *,
        path: tuple[str, ...] = (),
        position: Position | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(message, position=position, source=source)
        self.path = path
