"""A clinic whose workflow calls a module, over HTTP at a receiver on loopback or over the streams."""

from datetime import datetime
from typing import Any

from django.utils import timezone

from attempts.lifecycle.models import Attempt
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.workflows.modules.support import PAYMENTS, REFUND, registered
from tests.workflows.running import REGION, Running
from workflows.events.models import OutboxEvent
from workflows.events.services.outbox import outbox_relay
from workflows.modules.models import ModuleCall
from workflows.modules.services.work import call_heads, module_calls_work
from workflows.runs.models import Nudge, WorkflowInstance
from workflows.runs.services.clock import step_retries_due
from workflows.runs.services.replay import instance_replay
from workflows.runs.services.signal_follow import signal_follow

SEND = {"order_ref": "order-1", "amount_cents": 500, "currency": "EUR"}
RECEIPT = b'{"receipt_ref": "rcpt-1"}'


def document(**step: Any) -> dict[str, Any]:
    """Pays, and halts as unpaid if that fails."""
    params = {"module": "payments", "operation": "refund", "send": SEND, "returns": REFUND["returns"]}
    pay = {"kind": "call_service", "params": params | step.pop("params", {}), "timeout_seconds": 120}
    return {
        "format": 2,
        "name": "Refund",
        "start_step": "pay",
        "steps": {
            "pay": pay | {"transitions": {"on_complete": "done", "on_failure": "unpaid"}} | step,
            "done": {"kind": "emit_final", "transitions": {"on_complete": "TERMINAL"}},
            "unpaid": {"kind": "halt", "params": {"reason_code": "adapter_failed"}},
        },
    }


class Calling(Running):
    """`effect` is that of the operation. Without a target the module reads the streams."""

    def __init__(self, cast: Cast, target: CountingTarget | None = None, *, effect: str = "once", **step: Any) -> None:
        terms = PAYMENTS | {"operations": {"refund": REFUND | {"effect": effect}}}
        if target is not None:
            target.body = RECEIPT
            terms |= {"transport": "http", "url": f"http://{target.host}"}
        self.registered = registered(cast, terms)
        super().__init__(cast, document(**step))

    def relay(self) -> None:
        with every_tenant():
            outbox_relay(at=timezone.now())

    def work(self, places: Any, *, at: datetime | None = None) -> int:
        return module_calls_work(now=lambda: at or timezone.now(), places=places)

    def retry(self) -> int:
        with every_tenant():
            return step_retries_due(at=timezone.now(), region=REGION)

    def attempts(self) -> list[Attempt]:
        """Those of the call: the end of the run is a governed step too."""
        with every_tenant():
            return list(Attempt.objects.filter(operation="payments.refund"))

    def follow(self) -> int:
        with every_tenant():
            ids = list(Nudge.objects.order_by("id").values_list("id", flat=True))
            return sum(signal_follow(signal_id=one, at=timezone.now(), region=REGION) for one in ids)

    def ended(self, places: Any, *, at: datetime | None = None) -> WorkflowInstance:
        """A run whose call was sent and whose answer was followed; `at`: then, instead of now."""
        instance = self.start(at=at)
        self.relay()
        self.work(places, at=at)
        self.follow()
        return self.fresh(instance)

    def calls(self) -> list[ModuleCall]:
        with every_tenant():
            return list(ModuleCall.objects.order_by("id"))

    def due(self) -> int:
        return len(call_heads([]))

    def agrees(self, instance: WorkflowInstance) -> bool:
        with every_tenant():
            return instance_replay(instance=self.fresh(instance)).differences == []

    def requested(self, instance: WorkflowInstance) -> list[OutboxEvent]:
        return [row for row in self.requests(instance) if row.event_type.startswith("module.")]
