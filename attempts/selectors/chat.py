"""Reading for the chat's door."""

from uuid import UUID

from attempts.models import ChatWorkspace
from attempts.states import RouteState
from reasoncodes.tenancy import every_tenant


def workspace_for_callback(*, workspace_id: UUID) -> ChatWorkspace | None:
    """None for one that is unknown or disabled: through it nobody decides."""
    with every_tenant():
        return ChatWorkspace.objects.filter(id=workspace_id, state=RouteState.ACTIVE).first()
