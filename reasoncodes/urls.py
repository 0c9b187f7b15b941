"""Routes of this app below /api/v1/."""

from django.urls import path

from reasoncodes.api import ReasonCodeApi, ReasonCodeListApi

app_name = "reasoncodes"
urlpatterns = [
    path("reason-codes", ReasonCodeListApi.as_view(), name="reason_code_list"),
    path("reason-codes/<uuid:reason_code_id>", ReasonCodeApi.as_view(), name="reason_code"),
]
