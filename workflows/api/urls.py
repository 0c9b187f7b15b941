"""Routes of this app under /api/v1/."""

from workflows.api import bulk, definitions, event_types, events, evidence, instances, parked, webhooks

app_name = "workflows"
urlpatterns = [
    *definitions.urlpatterns,
    *event_types.urlpatterns,
    *events.urlpatterns,
    *parked.urlpatterns,
    *bulk.urlpatterns,
    *instances.urlpatterns,
    *evidence.urlpatterns,
    *webhooks.urlpatterns,
]
