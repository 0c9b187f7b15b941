"""Whether a contract allows automatic retries of its steps."""

from governance.contracts.states import Effect
from governance.enforcement.models import snapshot_load
from workflows.runs.models import WorkflowInstance
from workflows.runs.selectors.locked import kind_of


def retries_allowed(instance: WorkflowInstance, *, step_id: str = "") -> bool:
    """A contract can only tighten what the definition asks for."""
    contract = instance.contract
    if contract is None or not contract.snapshot_sha256:
        return False
    known = kind_of(instance, step_id) if contract.effect == Effect.ONCE and step_id else None
    if known is not None and known.bind is not None and not known.is_governed:
        # A contract of effect `once` says "never", because another step has that effect. A call that only reads opens
        # no attempt, so the contract says nothing about it.
        return True
    documents = snapshot_load(contract.snapshot_sha256)["documents"]
    return bool(documents["retry_and_replay"]["automatic_retries"] != "never")
