"""Routes of this app under /api/v1/."""

from django.urls import path

from attempts.execution import api as execution
from attempts.intake import api as idempotency
from attempts.intake.api import AttemptCreateApi
from attempts.lifecycle import api as attempts
from attempts.lifecycle import api as evidence
from attempts.notify import api as notification_routes
from attempts.proposals import api as proposals
from attempts.quarantine import api as quarantine
from attempts.reviews.api import delegations, reviews

app_name = "attempts"
urlpatterns = [
    path(
        "execution/<str:workflow_slug>/<str:contract_version>/attempts",
        AttemptCreateApi.as_view(),
        name="attempt_create",
    ),
    path("organizations/me/limits", idempotency.LimitsApi.as_view(), name="organization_limits"),
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
    *delegations.urlpatterns,
    *idempotency.urlpatterns,
    *proposals.urlpatterns,
    *quarantine.urlpatterns,
    *notification_routes.urlpatterns,
]
