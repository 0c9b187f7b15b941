import time

import pytest

from tests.contract.fuzzing import Fuzzing
from tests.contract.test_openapi import SPARED, config
from tests.contract.world import undone


def say(*a):
    with open("/tmp/schema/prog.txt", "a") as f:
        print(time.strftime("%X"), *a, file=f, flush=True)


@pytest.mark.parametrize("phase", ["coverage", "fuzzing", "stateful"])
def test_profile(world, phase):
    t = time.process_time()
    w0 = time.time()
    count = {"coverage": 1, "fuzzing": 6, "stateful": 15}[phase]
    cfg = config(count, phase)
    cfg["max-time"] = {"coverage": 130, "fuzzing": 100, "stateful": 60}[phase]
    f = Fuzzing(world, cfg, SPARED, keeps=phase == "stateful")
    try:
        if phase == "stateful":
            with undone():
                f.run()
        else:
            f.run()
    finally:
        say(
            phase,
            "cpu",
            time.process_time() - t,
            "wall",
            time.time() - w0,
            "requests",
            sum(sum(c.values()) for c in f.reached.values()),
            "ops",
            len(f.reached),
            "findings",
            len(f.findings),
        )
        with open(f"/tmp/schema/findings_{phase}.txt", "w") as o:
            o.write(
                f.report()
                + "\n"
                + "\n".join(f"{k}: {dict(v)}" for k, v in f.reached.items())
                + "\nREFUSED\n"
                + "\n".join(f"{k}: {v}" for k, v in f.refused.items())
            )
