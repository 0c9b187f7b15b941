"""What a process does that tests kill: one piece of the engine's work, until it dies by -9 at the named moment."""

import os
import signal
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.tenancy import every_tenant
from workflows.events.services.outbox import outbox_relay
from workflows.events.services.receive import event_receive
from workflows.runs.services.clock import steps_time_out


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def work_and_die(order: dict[str, Any]) -> None:
    with every_tenant():
        if order["moment"] == "between two":
            _ticks_until_the_second()
        with transaction.atomic():
            if order["moment"] == "after the commit":  # before any doorbell of the work itself
                transaction.on_commit(die)
            _work(order)
            if order["moment"] == "before the commit":
                die()


def _work(order: dict[str, Any]) -> None:
    if order["work"] == "relay":
        outbox_relay(at=timezone.now())
    else:
        organization = UUID(order["envelope"]["org_id"])
        actor = Actor(ActorKind.SERVICE, UUID(order["actor"]), frozenset({organization}), frozenset())
        event_receive(envelope=order["envelope"], actor=actor, at=timezone.now(), region="US")


def _ticks_until_the_second() -> None:
    """The tick commits row by row: dies when it has written the second one, and not yet committed it."""
    written: list[str] = []

    def watch(execute: Any, sql: str, *rest: Any) -> Any:
        done = execute(sql, *rest)
        written.extend([sql] if "INSERT INTO" in sql and "workflows_workflowevent" in sql else [])
        if len(written) == 2:
            die()
        return done

    with connection.execute_wrapper(watch):
        steps_time_out(at=timezone.now(), region="US")
