"""What the boundary's detectors cost: a whole request, and one harmless value, with each edition of the detectors."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.evaluate import build_contract, build_request
from governance.boundary.rules import BoundaryPolicy, inspect_metadata
from governance.boundary.rules.editions import EDITIONS
from governance.enforcement.rules.inspection import inspect_request
from tests.governance.boundary.samples import HARMLESS

ROUNDS = 7
REQUESTS = 2_000


def microseconds(work: Callable[[Any], object], items: Sequence[Any]) -> float:
    """Per item, the median of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for item in items:
            work(item)
        rounds.append((time.process_time() - start) / len(items) * 1e6)
    return statistics.median(rounds)


def main() -> None:
    policy = BoundaryPolicy.from_document(build_contract()["documents"]["metadata_boundary"])
    requests = [build_request(number) for number in range(REQUESTS)]
    any_field, values = BoundaryPolicy(schema=None), [{"link": value} for _, value in HARMLESS]
    for edition in EDITIONS:

        def whole(request: dict[str, Any], edition: int = edition) -> object:
            return inspect_request(request, metadata=request["metadata"], policy=policy, edition=edition)

        def one(metadata: dict[str, Any], edition: int = edition) -> object:
            return inspect_metadata(metadata, policy=any_field, edition=edition)

        print(
            f"edition {edition}: {microseconds(whole, requests):.1f} µs per request, "
            f"{microseconds(one, values):.1f} µs per harmless value"
        )


if __name__ == "__main__":
    main()
