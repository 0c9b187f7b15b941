"""One chaos run: start, drive and break, heal, let it come to rest, look at the record."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.chaos.drive import ChaosClient
from bench.chaos.faults import FaultInjector
from bench.chaos.history import History
from bench.chaos.plan import CLIENTS, faults
from bench.chaos.receiver import Receiver
from bench.chaos.stack import ChaosStack
from bench.chaos.state import final_state, moving
from bench.chaos.verifying import Verifier, deny_drill
from config.embedded.paths import PROJECT
from tests.stack.homes import home_folder

# A short run, as among the tests, has no time for whole checks beside it.
VERIFYING_FROM = 60.0
CALM_SECONDS = 3.0
PROGRESS_SECONDS = 30
READY_SECONDS = 120.0
# Longer than the slowest thing that only needs its turn: a retry of the HTTP adapter, of a webhook, an expired lease.
REST_SECONDS = 180.0


def chaos_run(
    *, history: History, seconds: float, seed: int, seasoned: Path | None = None, rest: float = REST_SECONDS
) -> None:
    receiver = Receiver(history, seed)
    with home_folder() as unused:
        stack = ChaosStack(unused.parent, receiver=receiver.address, seasoned=seasoned)
        try:
            stack.start()
            stack.ready(seconds=READY_SECONDS)
            history.write("start", seed=seed, seconds=seconds, at=history.now())
            drive(stack, history, seconds=seconds, seed=seed)
            come_to_rest(stack, history, rest)
            look(stack, history)
            if seconds >= VERIFYING_FROM:
                deny_drill(stack, history)
        finally:
            stack.stop()
            receiver.stop()


def drive(stack: ChaosStack, history: History, *, seconds: float, seed: int) -> None:
    clients = [
        ChaosClient(base_url=stack.stack.base_url, demo=stack.demo, history=history, seed=seed, client=number)
        for number in range(CLIENTS)
    ]
    injector = FaultInjector(stack, history, faults(seed, seconds=seconds, calm=CALM_SECONDS))
    verifiers = [Verifier(stack, history, seed)] if seconds >= VERIFYING_FROM else []
    for thread in (*clients, *verifiers, injector):
        thread.start()
    time.sleep(seconds)
    injector.over.set()
    for client in clients:
        client.over.set()
    for verifier in verifiers:
        verifier.over.set()
    for thread in (injector, *clients, *verifiers):
        thread.join(150)
    for client in clients:
        client.close()
    injector.heal()


def come_to_rest(stack: ChaosStack, history: History, seconds: float) -> None:
    """Until everything that our own processes have to do is done, or they have had more than enough time."""
    began = history.now()
    recovered = stack.ready(seconds=READY_SECONDS)
    deadline = time.monotonic() + seconds
    longest, fewest = deadline + 2 * seconds, None
    while (left := moving(stack.servers.database_owner_url)) and time.monotonic() < deadline:
        # A busy machine is slow, and not stuck: while it becomes less, there is more time.
        if fewest is None or left < fewest:
            fewest, deadline = left, min(longest, max(deadline, time.monotonic() + PROGRESS_SECONDS))
        time.sleep(1)
    history.write("rest", began=began, ended=history.now(), ready_after=round(recovered, 1), left=left)


def look(stack: ChaosStack, history: History) -> None:
    history.write("final", state=final_state(stack.servers.database_owner_url))
    commands = [("verify_ledger",), ("replay_decision", "--all")]
    if any(PROJECT.glob("*/management/commands/verify_record.py")):
        commands.append(("verify_record", "--full"))
    with ThreadPoolExecutor(len(commands)) as pool:
        for words, done in zip(commands, pool.map(lambda words: stack.manage(*words), commands), strict=True):
            said = (done.stdout + done.stderr).strip().splitlines()
            history.write("verified", name=words[0], code=done.returncode, said=(said or [""])[-1][:300])
