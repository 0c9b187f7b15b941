"""With how many examples a property is tested: all in `make test`, a third in `make check`, many more in a soak
test."""

import os
from typing import Any

from hypothesis import settings

SCALE = float(os.environ.get("PROPERTY_SCALE", "1"))
FEWEST = 10


def scaled(count: int) -> int:
    return max(min(count, FEWEST), round(count * SCALE))


def examples(count: int, **more: Any) -> settings:
    return settings(max_examples=scaled(count), deadline=None, **more)


settings.register_profile("holdpoint", max_examples=scaled(100), deadline=None)
settings.load_profile("holdpoint")
