"""Routes of this app under /api/v1/."""

from django.urls import path

from attempts.api import attempts, evidence, execution, idempotency, notification_routes, quarantine, reviews
from attempts.api.intake import AttemptCreateApi

app_name = "attempts"
urlpatterns = [
    path(
        "execution/<str:workflow_slug>/<str:contract_version>/attempts",
        AttemptCreateApi.as_view(),
        name="attempt_create",
    ),
    path("attempts", attempts.AttemptListApi.as_view(), name="attempt_list"),
    path("attempts/<uuid:attempt_id>", attempts.AttemptApi.as_view(), name="attempt"),
    path("attempts/<uuid:attempt_id>/timeline", attempts.AttemptTimelineApi.as_view(), name="attempt_timeline"),
    path("attempts/<uuid:attempt_id>/decision", attempts.AttemptDecisionApi.as_view(), name="attempt_decision"),
    path("attempts/<uuid:attempt_id>/explain", attempts.AttemptExplainApi.as_view(), name="attempt_explain"),
    path("attempts/<uuid:attempt_id>/receipts", attempts.AttemptReceiptsApi.as_view(), name="attempt_receipts"),
    path("attempts/<uuid:attempt_id>/cancel", attempts.AttemptCancelApi.as_view(), name="attempt_cancel"),
    path("attempts/<uuid:attempt_id>/replay", attempts.AttemptReplayApi.as_view(), name="attempt_replay"),
    *evidence.urlpatterns,
    *execution.urlpatterns,
    *reviews.urlpatterns,
    *idempotency.urlpatterns,
    *quarantine.urlpatterns,
    *notification_routes.urlpatterns,
]
