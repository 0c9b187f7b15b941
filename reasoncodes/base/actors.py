"""Who acts. Entry points build an Actor from the credential; services take it and never look at a request."""

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
    """A service account, a person, the clock (scheduled tasks), or the program itself (set-up and commands)."""

    kind: ActorKind
    id: UUID | None = None
    organization_ids: frozenset[UUID] = field(default_factory=frozenset)
    scopes: frozenset[str] = field(default_factory=frozenset)
    module: str = ""
    """The registered module that a service account is bound to."""

    def may_act_in(self, organization_id: UUID | None) -> bool:
        """The clock and the program act everywhere; services and people only in the organizations of their
        credential."""
        return self.kind in {ActorKind.CLOCK, ActorKind.SYSTEM} or organization_id in self.organization_ids


CLOCK = Actor(ActorKind.CLOCK)
SYSTEM = Actor(ActorKind.SYSTEM)
