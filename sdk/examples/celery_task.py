"""A Celery task whose side effect happens at most once, however often the broker delivers it.

    HOLDPOINT_URL=… HOLDPOINT_KEY=… HOLDPOINT_EXECUTOR_KEY=… python celery_task.py order-17

The script runs a worker of its own on a broker in memory and delivers the same task three times.
"""

import sys

from celery import Celery, Task
from celery.contrib.testing.worker import start_worker
from holdpoint_client import Action, AlreadyDone, HeldError, TakenElsewhere, current_lease, governed

app = Celery("orders", broker="memory://", backend="cache+memory://")
app.conf.update(task_acks_late=True, worker_hijack_root_logger=False, broker_connection_retry_on_startup=True)


@governed(
    contract="demo-allow",
    ref=lambda order: f"{order}/ship",
    action=lambda order: Action("order.ship", target_ref=order, fields=("shipped_at",)),
    patient_context_ref=lambda order: f"ctx-{order}",
)
def ship(order: str) -> str:
    """The client is made from the environment in the worker's own process."""
    print(f"shipping {order} under the key {current_lease().effect_key}", flush=True)
    return f"tracking-{order}"


@app.task(bind=True, max_retries=None)  # type: ignore[untyped-decorator, unused-ignore]
def ship_order(self: Task, order: str) -> str:
    """A held order comes back later and asks about the same attempt; what was done before is not done again. Neither a
    denial nor an unknown outcome is retried: both end the task with their error."""
    try:
        return ship(order)
    except AlreadyDone:
        return "shipped before"
    except (HeldError, TakenElsewhere) as error:
        raise self.retry(exc=error, countdown=30) from error


def main() -> int:
    order = sys.argv[1]
    with start_worker(app, perform_ping_check=False, pool="solo", loglevel="ERROR"):
        results = [ship_order.delay(order) for _ in range(3)]
        for result in results:
            print(f"task: {result.get(timeout=60)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
