"""Routes of this app under /api/v1/."""

from workflows.definitions.api import definitions, migrate, what_if
from workflows.events.api import event_types, events, parked
from workflows.modules import api as modules
from workflows.runs.api import bulk, instances
from workflows.webhooks.api import webhooks

app_name = "workflows"
urlpatterns = [
    *definitions.urlpatterns,
    *migrate.urlpatterns,
    *what_if.urlpatterns,
    *event_types.urlpatterns,
    *events.urlpatterns,
    *parked.urlpatterns,
    *bulk.urlpatterns,
    *instances.urlpatterns,
    *instances.evidence_urlpatterns,
    *modules.urlpatterns,
    *webhooks.urlpatterns,
]
