"""`make chaos`: a whole stack under random use and random faults, and a checker that proves what came of it."""
