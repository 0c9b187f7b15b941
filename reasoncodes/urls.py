"""Routes of this app below /api/v1/."""

from django.urls import path

from reasoncodes.api import ReasonCodeApi, ReasonCodeListApi, ReasonCodeTakeBackApi

app_name = "reasoncodes"
urlpatterns = [
    path("reason-codes", ReasonCodeListApi.as_view(), name="reason_code_list"),
    path("reason-codes/<uuid:reason_code_id>", ReasonCodeApi.as_view(), name="reason_code"),
    path("reason-codes/<uuid:reason_code_id>/take-back", ReasonCodeTakeBackApi.as_view(), name="reason_code_take_back"),
]
