"""Refusals of this room; the docstring is the help page under `/problems/`."""

from governance.violations.errors import RuleBroken
from governance.violations.states import ViolationKind


class ModuleOverreach(RuleBroken):
    """This key is bound to a module, and the event is not one that the module may publish.

    A module publishes the event types that it declared, and answers only steps that were sent to it. Use a key of the
    module that the step was sent to, or have the event type added to the module: `PATCH /api/v1/modules/{id}`, which a
    second person confirms. If the installation takes bound keys only, the service account must be bound to a module
    first. Holdpoint has recorded that this was tried.
    """

    code = "module-overreach"
    status = 403
    title = "Not an event of this module"
    violation = ViolationKind.MODULE_OVERREACH
