"""Refusals of this app; the docstring is the help page under `/problems/`."""

from reasoncodes.base.errors import DomainError


class DefinitionInvalid(DomainError):
    """The definition has errors and cannot be published.

    `errors` lists all findings at once: the rule, the place in the document, what to do, and the nearest name that
    exists. Nothing was changed. Correct the definition and publish again. `POST …/validate` runs the same checks
    without publishing.
    """

    code = "definition-invalid"
    status = 422
    title = "The definition is invalid"
    default_reason_code = "invalid_input"
