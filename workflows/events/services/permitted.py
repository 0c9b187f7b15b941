"""Whether the key that sends an event may publish it: a bound key only what its module may."""

from uuid import UUID

from reasoncodes.base.actors import Actor, ActorKind
from workflows.kinds.registry import kind_table
from workflows.modules.configured import bound_keys_only
from workflows.modules.errors import ModuleOverreach
from workflows.modules.rules.matrix import module_may_publish, unbound_may_publish
from workflows.modules.selectors import module_publishes


def event_permitted(*, actor: Actor, organization_id: UUID, event_type: str) -> None:
    """Raises a recorded refusal. A key that is bound to no module costs no query."""
    if actor.kind is not ActorKind.SERVICE:
        return
    if not actor.module:
        if bound_keys_only() and not unbound_may_publish(event_type):
            raise _overreach(actor, organization_id, "This key is bound to no module, so it answers no step.")
        return
    declared = module_publishes(organization_id=organization_id, slug=actor.module)
    if declared is None:
        raise _overreach(actor, organization_id, "The module of this key is disabled.")
    if not module_may_publish(event_type, module=actor.module, publishes=declared, kinds=kind_table()):
        raise _overreach(actor, organization_id, "")


def _overreach(actor: Actor, organization_id: UUID, detail: str) -> ModuleOverreach:
    return ModuleOverreach(detail, subject_type="service_account", subject_id=actor.id, organization_id=organization_id)
