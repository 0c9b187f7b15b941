"""Routes under `/scim/v2/`."""

from django.urls import path

from governance.identity.api import scim

urlpatterns = [
    path("<slug:slug>/Users", scim.UserListView.as_view(), name="scim_users"),
    path("<slug:slug>/Users/<uuid:person_id>", scim.UserView.as_view(), name="scim_user"),
    path("<slug:slug>/Groups", scim.GroupListView.as_view(), name="scim_groups"),
    path("<slug:slug>/Groups/<uuid:group_id>", scim.GroupView.as_view(), name="scim_group"),
    path("<slug:slug>/ServiceProviderConfig", scim.ConfigView.as_view(), name="scim_config"),
    path("<slug:slug>/ResourceTypes", scim.ResourceTypesView.as_view(), name="scim_resource_types"),
    path("<slug:slug>/Schemas", scim.SchemasView.as_view(), name="scim_schemas"),
]
