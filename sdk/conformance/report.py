"""Runs the probes with a given way to send them, and returns a result for each."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sdk.conformance.messages import Kit, ModuleAnswer, Request
from sdk.conformance.probes import Probe, probes

Send = Callable[[list[Request]], list[ModuleAnswer]]
"""Sends a list at the same time and returns the answers in the same order. It must not raise because of what a module
does."""
Effects = Callable[[], Mapping[str, Any]]
"""Returns how often the module did the work, by key."""


class NotReachable(Exception):
    """The module did not answer the first message, so there is nothing to check."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    probe: str
    group: str
    rule: str
    said: str | None

    @property
    def ok(self) -> bool:
        return self.said is None

    def as_json(self) -> dict[str, Any]:
        return {"probe": self.probe, "group": self.group, "rule": self.rule, "ok": self.ok, "said": self.said}


def check(kit: Kit, send: Send, effects: Effects | None = None) -> list[ProbeResult]:
    """The results of all probes, also after one has failed."""
    return [*check_each(kit, send, effects)]


def check_each(kit: Kit, send: Send, effects: Effects | None = None) -> Iterator[ProbeResult]:
    for number, probe in enumerate(probes()):
        said, last = probe_run(probe, kit, send)
        # Only at the first probe: later, a missing answer is a result like any other.
        if number == 0 and last.status == 0:
            raise NotReachable
        said = said or (miscounted(probe, kit, effects()) if effects else None)
        yield ProbeResult(probe.name, probe.group.value, probe.rule, said)


def probe_run(probe: Probe, kit: Kit, send: Send) -> tuple[str | None, ModuleAnswer]:
    script = probe.script(kit)
    wanted = next(script)
    while True:
        answers = send(wanted)
        try:
            wanted = script.send(answers)
        except StopIteration as end:
            return end.value, answers[-1]


def miscounted(probe: Probe, kit: Kit, counted: Mapping[str, Any]) -> str | None:
    for name in probe.keys:
        if (times := counted.get(kit.message(name).key, 0)) != 1:
            return f"did the work {times} times; once was expected"
    for name in probe.never:
        if times := counted.get(kit.message(name).key, 0):
            return f"did the work {times} times for a message that it had to refuse"
    return None
