"""Routes of this app under /api/v1/."""

from django.urls import path

from attempts.api.intake import AttemptCreateApi

app_name = "attempts"
urlpatterns = [
    path(
        "execution/<str:workflow_slug>/<str:contract_version>/attempts",
        AttemptCreateApi.as_view(),
        name="attempt_create",
    ),
]
