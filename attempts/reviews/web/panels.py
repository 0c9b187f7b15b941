"""What apps above add to a card: a panel is registered by name in their `apps.py` and gets the review it is about."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review


@dataclass(frozen=True, slots=True)
class Panel:
    """A section of the card: its heading and the template that draws it."""

    title: str
    template: str
    context: Mapping[str, Any] = field(default_factory=dict)


PanelMaker = Callable[[Review, Attempt | None], Panel | None]
_makers: list[PanelMaker] = []


def register_panel(maker: PanelMaker) -> PanelMaker:
    """`maker` runs inside the reader's tenant scope, and answers None where it has nothing to say."""
    if maker not in _makers:
        _makers.append(maker)
    return maker


def panels_of(*, review: Review, attempt: Attempt | None) -> list[Panel]:
    found = (maker(review, attempt) for maker in _makers)
    return [panel for panel in found if panel is not None]
