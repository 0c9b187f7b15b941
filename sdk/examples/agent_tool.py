"""An agent whose tool passes a hold point, in the manner of LangGraph (which is not needed): nodes over a state that is
saved after each step, and an interrupt while a person has to decide.

    HOLDPOINT_URL=… HOLDPOINT_KEY=… HOLDPOINT_EXECUTOR_KEY=… python agent_tool.py thread-17 [--contract demo-hold]

When the tool is held the script ends with 3 and has saved the thread. Run it again: it goes on with the same tool call,
under the same attempt, whatever the model would have said the second time.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from holdpoint_client import Action, AlreadyDone, AsyncHoldpoint, DeniedError, HeldError, OutcomeUnknown, governed

State = dict[str, Any]


class Interrupt(Exception):
    """The graph stops here until somebody has decided."""


def tools(client: AsyncHoldpoint, contract: str) -> dict[str, Callable[..., Awaitable[str]]]:
    @governed(
        client,
        contract=contract,
        ref=lambda call_id, case: f"tool/{call_id}",  # the tool call's id: the model may call twice and mean it
        action=lambda call_id, case: Action("case.close", target_ref=case, fields=("status",)),
        patient_context_ref=lambda call_id, case: f"ctx-{case}",
    )
    async def close_case(call_id: str, case: str) -> str:
        print(f"closing {case}", flush=True)
        return f"{case} is closed"

    return {"close_case": close_case}


def model(state: State) -> State:
    """Stands for the language model: asks for one tool, then answers with what came of it."""
    last = state["messages"][-1]
    if last["role"] == "user":
        call = {"id": f"{state['thread']}/1", "tool": "close_case", "arguments": {"case": last["content"]}}
        return state | {"call": call, "next": "tool"}
    done = {"role": "assistant", "content": f"Result: {last['content']}"}
    return state | {"messages": [*state["messages"], done], "next": "end"}


async def tool(state: State, known: dict[str, Callable[..., Awaitable[str]]]) -> State:
    """What the model is told is honest: done, denied, or unknown. Held is not its business: the graph waits."""
    call = state["call"]
    try:
        said = await known[call["tool"]](call["id"], **call["arguments"])
    except HeldError as held:
        raise Interrupt(str(held)) from held
    except AlreadyDone:
        said = "it was done before"
    except DeniedError as denied:
        said = f"not allowed: {denied.answer.reason_code}"
    except OutcomeUnknown:
        said = "unknown whether it happened; a person finds out. Do not try again."
    return state | {"messages": [*state["messages"], {"role": "tool", "content": said}], "next": "model"}


async def run(state: State, memory: Path, known: dict[str, Callable[..., Awaitable[str]]]) -> State:
    while state["next"] != "end":
        state = model(state) if state["next"] == "model" else await tool(state, known)
        memory.write_text(json.dumps(state))  # the checkpoint: after a crash it goes on here
    return state


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("thread")
    parser.add_argument("--contract", default="demo-hold")
    options = parser.parse_args()
    memory = Path(os.environ.get("AGENT_MEMORY", ".")) / f"{options.thread}.json"
    fresh = {
        "thread": options.thread,
        "next": "model",
        "messages": [{"role": "user", "content": f"case-{options.thread}"}],
    }
    state = json.loads(memory.read_text()) if memory.exists() else fresh
    async with AsyncHoldpoint() as client:
        try:
            state = await run(state, memory, tools(client, options.contract))
        except Interrupt as why:
            print(f"interrupted: {why}")
            return 3
    print(state["messages"][-1]["content"])
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
