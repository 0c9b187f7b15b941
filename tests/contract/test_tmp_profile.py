import cProfile
import time

from tests.contract.fuzzing import Fuzzing
from tests.contract.test_openapi import SPARED, config
from tests.contract.world import World

OUT = open("/tmp/schema/prog.txt", "a")


def say(*a):
    print(time.strftime("%X"), *a, file=OUT, flush=True)


def test_profile(db, tmp_path):
    prof = cProfile.Profile()
    t = time.process_time()
    w0 = time.time()

    world = World(tmp_path)

    say("WORLD cpu", time.process_time() - t, "wall", time.time() - w0)

    for name, phases, cap in (("examples", {"examples": True}, 40), ("coverage", {"coverage": True}, 100)):
        t = time.process_time()
        w0 = time.time()
        cfg = config(1, **phases)
        cfg["max-time"] = cap
        f = Fuzzing(world, cfg, SPARED)
        try:
            f.run()
        finally:
            say(
                name,
                "cpu",
                time.process_time() - t,
                "wall",
                time.time() - w0,
                "requests",
                sum(sum(c.values()) for c in f.reached.values()),
                "ops",
                len(f.reached),
            )
            open(f"/tmp/schema/findings_{name}.txt", "w").write(
                f.report() + "\n" + "\n".join(f"{k}: {dict(v)}" for k, v in f.reached.items())
            )
