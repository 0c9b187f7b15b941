"""Routes of the review pages under /review/."""

from django.urls import path

from attempts.notify.web.notifications import LinkCodeView, NotificationsPage, UnlinkView
from attempts.quarantine.web import CasePage, CasesPage
from attempts.reviews.web.answers import AnswerView
from attempts.reviews.web.card import CardLive, CardPage
from attempts.reviews.web.delegations import DelegationEndView, DelegationsPage
from attempts.reviews.web.queue import BulkView, QueueLiveView, QueuePageView

app_name = "review"
urlpatterns = [
    path("", QueuePageView.as_view(), name="queue"),
    path("live", QueueLiveView.as_view(), name="queue_live"),
    path("bulk", BulkView.as_view(), name="bulk"),
    path("cases", CasesPage.as_view(), name="cases"),
    path("cases/<uuid:case_id>", CasePage.as_view(), name="case"),
    path("delegations", DelegationsPage.as_view(), name="delegations"),
    path("delegations/<uuid:delegation_id>/end", DelegationEndView.as_view(), name="delegation_end"),
    path("notifications", NotificationsPage.as_view(), name="notifications"),
    path("notifications/code/<uuid:workspace_id>", LinkCodeView.as_view(), name="chat_code"),
    path("notifications/unlink/<uuid:identity_id>", UnlinkView.as_view(), name="chat_unlink"),
    path("<uuid:review_id>", CardPage.as_view(), name="card"),
    path("<uuid:review_id>/live", CardLive.as_view(), name="card_live"),
    path("<uuid:review_id>/<slug:verb>", AnswerView.as_view(), name="answer"),
]
