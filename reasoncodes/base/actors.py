"""Who acts. Doors build an Actor from the credential; services take it and never look at a request."""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID


class ActorKind(StrEnum):
    SERVICE = "service"
    PERSON = "person"
    CLOCK = "clock"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Actor:
    """A service account, a person, the clock, or the program itself while it is being set up."""

    kind: ActorKind
    id: UUID | None = None
    organization_ids: frozenset[UUID] = field(default_factory=frozenset)
    scopes: frozenset[str] = field(default_factory=frozenset)

    def may_act_in(self, organization_id: UUID | None) -> bool:
        """The clock and the program act everywhere; services and people only where their credential says."""
        return self.kind in {ActorKind.CLOCK, ActorKind.SYSTEM} or organization_id in self.organization_ids


CLOCK = Actor(ActorKind.CLOCK)
SYSTEM = Actor(ActorKind.SYSTEM)
