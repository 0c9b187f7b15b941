"""Errors of this package. An invalid document is not an error but a list of problems."""


class UnknownAreaError(LookupError):
    """The caller named a readiness area that does not exist: a fault in the program, not in a document."""

    code = "unknown_readiness_area"

    def __init__(self) -> None:
        super().__init__("There is no readiness area of that name.")
