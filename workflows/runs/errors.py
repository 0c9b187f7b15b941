"""Refusals of this app; the docstring is the help page under `/problems/`."""

from reasoncodes.base.errors import DomainError


class InterventionNotLegal(DomainError):
    """The instance is not in a state that allows this intervention.

    An ended instance cannot change. You can resume only a halted one. You can retry a step that failed or timed out, or
    the step at which the workflow halted. After the workflow's deadline nothing continues. Check the state of the
    instance and choose again; `supersede` starts the case anew.
    """

    code = "intervention-not-legal"
    status = 409
    title = "Not possible in this state"


class MigrationNotPossible(DomainError):
    """This run cannot go on under that version of its definition.

    `detail` says why. Name in `mapping` where each step under way goes, choose a version in which the step is of the
    same kind, or let the run end as it is.
    """

    code = "migration-not-possible"
    status = 409
    title = "The run cannot be migrated"


class RunExists(DomainError):
    """A run already goes on under this business key, and it was started with another input.

    `instance_id` names it. Only one run of a definition goes on under a business key; when it has completed or was
    cancelled, the key can be used again. The same request with the same input answers 200 and names the run.
    """

    code = "run-exists"
    status = 409
    title = "A run already goes on under this key"


class OutcomeUnresolved(DomainError):
    """The step's last request was sent, and nobody knows whether it took effect.

    This effect must not happen twice. Open the quarantine case, find out what happened, and record the finding. If it
    is `did_not_happen`, you can retry the step.
    """

    code = "outcome-unresolved"
    status = 409
    title = "The last outcome is unknown"
    default_reason_code = "outcome_unknown"


class NoSlotFree(DomainError):
    """The organization has reached its limit of concurrent runs, so this run stays halted.

    Try again when one of them has ended, or ask an administrator to raise the limit. Runs that have not started yet
    wait in a queue and start on their own. A run that a person stopped continues only when a person resumes it.
    """

    code = "no-place-free"
    status = 409
    title = "No place is free"
    default_reason_code = "concurrency_limit"
