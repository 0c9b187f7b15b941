"""Which files a request passes: real runs with a profiler, for the tables of docs/architecture.md.

A file is *passed* if one of its functions is called between the request and its answer, or while the worker runs the
task. Loading a module, class bodies, comprehensions and lambdas do not count. Each flow runs once before it is traced,
because what a process reads only the first time does not belong to the flow.

A *hop* is a passed file that a reader has to open to follow the flow. Not hops are wiring in `config`, the app that
everything uses, and `GROUND`, which every flow uses in the same way. A `BOX` counts as one hop however many of its
files are passed: it answers one question, and its rules run as a list. The hops of a held attempt are those of its
request, its approval and its execution together: 66 in November 2026, before files were grouped by capability; an event
had 35.
"""

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from itertools import count, islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from celery import current_app

from attempts.lifecycle.models import Attempt
from governance.sealing.models import LedgerLeaf
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, documents
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.governed import HOLD, open_contract
from tests.workflows.run_support import EVENTS
from tests.workflows.running import ANSWERS, Running

ROOT = Path(__file__).resolve().parent.parent
TRACED = ("config", "reasoncodes", "governance", "attempts", "workflows")
BOXES = ("governance/boundary/rules/", "governance/enforcement/rules/")
# Words of the domain; then what speaks SQL, Valkey and HTTP (but for the one place that writes rows, the
# append-only guard, the send lock and wake-ups); then who is asking, and whether they are proven.
GROUND = re.compile(
    r"^(config|reasoncodes)/|/(states|errors|metrics)\.py|^governance/sql/(?!insert|guards)|^governance/outside/(?!wake_up)"
    r"|^governance/(people/(api|web/\w+|rules/keys|rules/sign_in|selectors/sign_in|configured)|tenancy/web)\.py"
)
HELD_ATTEMPT = ("request", "approval", "execution")


class Trace:
    """Files in the order in which they were first passed; paths are from the root."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.seen: dict[int, CodeType] = {}  # keeps the code alive, so that no other one gets its id

    def forget(self) -> None:
        self.files.clear()
        self.seen.clear()

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or id(code) in self.seen:
            return
        self.seen[id(code)] = code
        if not code.co_name.startswith("<") and code.co_flags & CO_OPTIMIZED:
            path = project_file(Path(code.co_filename))
            if path and path not in self.files:
                self.files.append(path)


def project_file(path: Path) -> str | None:
    if not path.is_relative_to(ROOT):
        return None
    inside = path.relative_to(ROOT)
    return inside.as_posix() if inside.parts[0] in TRACED and "migrations" not in inside.parts else None


def hop(file: str) -> str | None:
    """The name under which the file counts, or None."""
    if GROUND.search(file):
        return None
    return next((box for box in BOXES if file.startswith(box)), file)


def hops(*flows: list[str]) -> list[str]:
    """In order, each once."""
    return list(dict.fromkeys(found for files in flows for file in files if (found := hop(file))))


@contextmanager
def traced(trace: Trace | None) -> Iterator[None]:
    """Traces what this thread and the threads that it starts do inside. Without a trace nothing is traced."""
    if trace is None:
        yield
        return
    before = sys.getprofile()
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def task(name: str, *arguments: Any) -> None:
    """Does what the worker does for a message of this name."""
    current_app.tasks[name](*arguments)


class Flows:
    """A clinic in which everything can happen; each method goes one way from its beginning to its end."""

    def __init__(self, cast: Cast, target: CountingTarget) -> None:
        current_app.loader.import_default_modules()
        open_contract(cast, rules=HOLD, adapter="http", documents=documents())
        self.target, self.numbers = target, count(1)
        self.caller, self.module = cast.api("attempts:create"), cast.api("orchestrator:write")
        self.reviewer = cast.session(cast.reviewer)
        self.running = Running(cast)

    def all(self) -> dict[str, list[str]]:
        """By the word for it in the heading of its table."""
        ways = (self.request, self.approval, self.execution, self.event, self.seal)
        return {way.__name__: self.files(way) for way in ways}

    @staticmethod
    def files(way: Callable[[Trace | None], None]) -> list[str]:
        way(None)
        trace = Trace()
        way(trace)
        return trace.files

    def request(self, trace: Trace | None) -> None:
        """For an action that a person must release."""
        self.held(trace)

    def approval(self, trace: Trace | None) -> None:
        """By the one reviewer it needs."""
        self.approve(self.held(None), trace)

    def execution(self, trace: Trace | None) -> None:
        """Lease, intent, call and completion by the worker."""
        task("attempts.tasks.execution.attempt_dispatch")  # what the other ways left
        calls = len(self.target.requests)
        attempt = self.held(None)
        self.approve(attempt, None)
        with traced(trace):
            task("attempts.tasks.execution.attempt_dispatch")
        assert len(self.target.requests) == calls + 1
        with every_tenant():
            assert Attempt.objects.get(id=attempt["id"]).state == "completed"

    def event(self, trace: Trace | None) -> None:
        """A module's answer that ends one step and begins the next."""
        instance = self.running.start()
        step = self.running.current(instance)
        assert step is not None
        name, payload = ANSWERS["consent.check.requested"]
        envelope = self.running.envelope(name, payload, case_id=instance.case_id, correlation_id=step.id)
        with traced(trace):
            answer = self.module.post(EVENTS, envelope, format="json")
        assert (answer.status_code, answer.json()["outcome"]) == (202, "advanced"), answer.content

    def seal(self, trace: Trace | None) -> None:
        """Open transactions of parallel tests delay sealing; then it is tried and traced again."""
        self.held(None)
        for _ in range(200):
            before = self.sealed()
            if trace:
                trace.forget()
            with traced(trace):
                task("governance.tasks.ledger_seal")
            if self.sealed() > before:
                return
            time.sleep(0.05)
        raise AssertionError("nothing could be sealed")

    @staticmethod
    def sealed() -> int:
        with every_tenant():
            return LedgerLeaf.objects.count()

    def held(self, trace: Trace | None) -> Any:
        """Tracing takes time. If an evaluator ran out of its time, the request was denied, and the next one is
        tried."""
        for number in islice(self.numbers, 5):
            if trace:
                trace.forget()
            with traced(trace):
                answer = ask(self.caller, number)
            if answer.json().get("reason_code") != "enforcement_exception":
                break
        assert answer.status_code == 202, answer.content
        return answer.json()

    def approve(self, attempt: dict[str, Any], trace: Trace | None) -> None:
        address = f"/api/v1/reviews/{attempt['review']['id']}"
        digest = self.reviewer.get(address).json()["action_digest"]
        with traced(trace):
            answer = self.reviewer.post(f"{address}/approve", {"action_digest": digest}, format="json")
        assert answer.status_code == 200, answer.content
