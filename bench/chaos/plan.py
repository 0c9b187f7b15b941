"""What a run does, out of its seed alone: the operations of each client and the faults, with their times. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

CLIENTS = 4
# How often each is chosen.
OPERATIONS = {
    "intake.allow": 5,
    "intake.hold": 4,
    "intake.deny": 2,
    "intake.closed": 1,
    "intake.once_http": 8,
    "intake.idempotent_http": 4,
    "intake.timeline": 1,
    "repeat": 6,
    "review": 5,
    "execute": 8,
    "event": 3,
    "read": 2,
}
# (fault, target): how often. `kill` is kill -9, `freeze` SIGSTOP, `cut` a link that ends all connections, `hole` a link
# that passes nothing on, `full` no space for files, `slow` clients that stall.
FAULTS = {
    ("kill", "web"): 2,
    ("kill", "web-process"): 2,
    ("kill", "adapters"): 3,
    ("kill", "clock"): 1,
    ("kill", "dispatch"): 1,
    ("kill", "beat"): 1,
    ("kill", "consumer"): 1,
    ("kill", "postgres"): 3,
    ("kill", "valkey"): 3,
    ("freeze", "web-process"): 1,
    ("freeze", "adapters"): 1,
    ("freeze", "clock"): 1,
    ("freeze", "beat"): 1,
    ("freeze", "postgres"): 2,
    ("freeze", "valkey"): 2,
    ("cut", "postgres"): 2,
    ("cut", "valkey"): 2,
    ("hole", "postgres"): 2,
    ("hole", "valkey"): 1,
    ("full", "postgres"): 1,
    ("full", "valkey"): 1,
    ("slow", "web"): 1,
}


@dataclass(frozen=True)
class Operation:
    number: int
    name: str
    pause: float
    choice: float
    """Between 0 and 1: which of several things it takes."""


@dataclass(frozen=True)
class Fault:
    at: float
    name: str
    target: str
    seconds: float
    choice: float


def operations(seed: int, client: int) -> Iterator[Operation]:
    random, number = Random(f"{seed}/client/{client}"), 0
    names, weights = list(OPERATIONS), list(OPERATIONS.values())
    while True:
        number += 1
        (name,) = random.choices(names, weights)
        yield Operation(number, name, random.uniform(0.02, 0.4), random.random())


def faults(seed: int, *, seconds: float, calm: float) -> list[Fault]:
    """One after another, with time to recover between them; none in the last `calm` seconds. They are drawn from a bag
    that is filled again when it is empty, so that a long run sees every kind."""
    random, at, found = Random(f"{seed}/faults"), 3.0, list[Fault]()
    bag: list[tuple[str, str]] = []
    while True:
        if not bag:
            bag = [kind for kind, times in FAULTS.items() for _ in range(times)]
            random.shuffle(bag)
        name, target = bag.pop()
        lasts = random.uniform(1.0, 6.0)
        if at + lasts > seconds - calm:
            return found
        found.append(Fault(round(at, 2), name, target, round(lasts, 2), random.random()))
        at += lasts + random.uniform(2.0, 7.0)
