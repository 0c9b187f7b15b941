"""`/accounts/`: only those of allauth's pages that this installation uses. No sign-up, no e-mail pages. Invitations and
new passwords are our own one-time links."""

from allauth.account import views
from django.urls import include, path

from governance.people.web.links import PasswordResetView, SignInLinkView
from governance.people.web.passkeys import PasskeyAddView, PasskeyRemoveView
from governance.people.web.second_factor import SecondFactorView
from governance.people.web.views import HomeView, OwnPasswordView, SessionEndView, SessionsView

urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("password/change/", OwnPasswordView.as_view(), name="account_change_password"),
    path("password/reset/", PasswordResetView.as_view(), name="account_reset_password"),
    path("link/<str:token>/", SignInLinkView.as_view(), name="sign_in_link"),
    path("second-factor/", SecondFactorView.as_view(), name="second_factor"),
    path("home/", HomeView.as_view(), name="account_home"),
    # Before allauth's own: the same addresses, with the ledger.
    path("2fa/webauthn/add/", PasskeyAddView.as_view(), name="mfa_add_webauthn"),
    path("2fa/webauthn/keys/<int:pk>/remove/", PasskeyRemoveView.as_view(), name="mfa_remove_webauthn"),
    path("2fa/", include("allauth.mfa.urls")),
    path("sessions/", SessionsView.as_view(), name="usersessions_list"),
    path("sessions/<int:session_id>/end", SessionEndView.as_view(), name="usersessions_end"),
]
