"""Panels that a higher app adds to the card of a review. It registers them in its `apps.py`, because imports go in one
direction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review


@dataclass(frozen=True, slots=True)
class Panel:
    """A section of the card: its title and its template."""

    title: str
    template: str
    context: Mapping[str, Any] = field(default_factory=dict)


PanelMaker = Callable[[Review, Attempt | None], Panel | None]
_makers: list[PanelMaker] = []


def register_panel(maker: PanelMaker) -> PanelMaker:
    """Registers a maker. It runs in the reader's scope and returns None if it has nothing to show."""
    if maker not in _makers:
        _makers.append(maker)
    return maker


def panels_of(*, review: Review, attempt: Attempt | None) -> list[Panel]:
    found = (maker(review, attempt) for maker in _makers)
    return [panel for panel in found if panel is not None]
