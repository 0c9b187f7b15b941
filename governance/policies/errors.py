"""Refusals about policies."""

from reasoncodes.base.errors import DomainError


class PolicyInvalid(DomainError):
    """At least one rule of the policy is not valid.

    `errors` lists every place that is wrong. For conditions it shows the line and column, with a caret under the spot.
    Correct the rules and send them again. docs/conditions.md describes the language.
    """

    code = "policy-invalid"
    status = 400
    title = "Policy not valid"
