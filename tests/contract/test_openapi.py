"""The OpenAPI document is the truth: schemathesis tries all of it, and nothing undocumented comes back, nor a 5xx."""

from typing import Any

from tests.contract.fuzzing import Fuzzing
from tests.contract.world import World

CHECKS: dict[str, Any] = {}


def config(examples: int, **phases: bool) -> dict[str, Any]:
    off = {"extra-data-sources": {"responses": False}}
    return {
        "seed": 7,
        "workers": 1,
        "continue-on-failure": True,
        "generation": {"max-examples": examples, "no-shrink": True, "deterministic": True, "database": "none"},
        "phases": {
            "examples": {"enabled": phases.get("examples", False), **off},
            "coverage": {"enabled": phases.get("coverage", False), **off},
            "fuzzing": {"enabled": phases.get("fuzzing", False), **off, "error-feedback": {"enabled": False}},
            "stateful": {"enabled": phases.get("stateful", False)},
        },
        "checks": CHECKS,
    }


def test_examples_and_every_boundary_of_every_parameter(world: World) -> None:
    import time

    t = time.process_time()
    found = Fuzzing(world, config(1, examples=True, coverage=True)).run()
    print("CPU", time.process_time() - t, sum(sum(c.values()) for c in found.reached.values()))
    print(found.reached)
    assert not found.findings, found.report()
