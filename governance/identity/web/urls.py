"""`/accounts/`: sign-in by an organization's own provider. allauth reverses the names of the OIDC and SAML routes."""

from allauth.socialaccount.providers import registry
from allauth.socialaccount.providers.saml import views as saml
from django.urls import include, path

from governance.identity.web import views

# allauth's own urls would do this, which we do not include: they have pages for signing up and connecting.
registry.load()

urlpatterns = [
    path("sso/", views.OrganizationView.as_view(), name="identity_start"),
    path("sso/<slug:slug>/", views.OrganizationView.as_view(), name="identity_organization"),
    path("sso/<slug:slug>/link/", views.LinkView.as_view(), name="identity_link"),
    # Before the password's own page, which keeps the name account_reauthenticate.
    path("reauthenticate/", views.reauthenticate),
    path("oidc/<slug:provider_id>/login/", views.oidc_login, name="openid_connect_login"),
    path("oidc/<slug:provider_id>/login/callback/", views.oidc_callback, name="openid_connect_callback"),
    path(
        "saml/<slug:organization_slug>/",
        include(
            [
                path("login/", saml.login, name="saml_login"),
                path("acs/", views.saml_answer, name="saml_acs"),
                path("acs/finish/", views.saml_finish, name="saml_finish_acs"),
                path("metadata/", saml.metadata, name="saml_metadata"),
                path("sls/", views.no_single_logout, name="saml_sls"),
            ]
        ),
    ),
]
