"""Routes of this app under /api/v1/."""

from django.urls import path

from governance.api.ledger import LedgerEntryApi, LedgerEntryListApi

app_name = "governance"
urlpatterns = [
    path("ledger/entries", LedgerEntryListApi.as_view(), name="ledger_entry_list"),
    path("ledger/entries/<uuid:entry_id>", LedgerEntryApi.as_view(), name="ledger_entry"),
]
