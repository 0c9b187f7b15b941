"""`/accounts/`: only those of allauth's pages that this installation uses. No sign-up, no e-mail, no password reset."""

from allauth.account import views
from django.urls import include, path

from governance.people.web.passkeys import PasskeyAddView, PasskeyRemoveView
from governance.people.web.views import SessionEndView, SessionsView

urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("password/change/", views.password_change, name="account_change_password"),
    # Before allauth's own: the same addresses, with the ledger.
    path("2fa/webauthn/add/", PasskeyAddView.as_view(), name="mfa_add_webauthn"),
    path("2fa/webauthn/keys/<int:pk>/remove/", PasskeyRemoveView.as_view(), name="mfa_remove_webauthn"),
    path("2fa/", include("allauth.mfa.urls")),
    path("sessions/", SessionsView.as_view(), name="usersessions_list"),
    path("sessions/<int:session_id>/end", SessionEndView.as_view(), name="usersessions_end"),
]
