"""All routes in one place."""

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from attempts.notify.web.slack import SlackCallbackView
from config.console.closed import autocomplete_closed, view_on_site_closed
from config.console.overview import overview_figures
from config.console.schedule import schedule, schedule_propose
from config.console.search import search
from config.console.start import start, start_step
from config.web.errors import bad_request, not_found, server_error
from config.web.health import health, health_ready
from config.web.landing import landing
from config.web.metrics import metrics
from config.web.problem_pages import problem_index, problem_page
from governance.people.web.views import ConsoleSignIn

handler400 = bad_request
handler404 = not_found
handler500 = server_error

urlpatterns = [
    path("", landing, name="landing"),
    path("admin/login/", ConsoleSignIn.as_view()),  # before the admin's own page, which keeps the name admin:login
    path("admin/autocomplete/", admin.site.admin_view(autocomplete_closed)),
    path("admin/r/<path:content_type_id>/<path:object_id>/", admin.site.admin_view(view_on_site_closed)),
    path("admin/search/", admin.site.admin_view(search), name="console_search"),
    path("admin/schedule/", admin.site.admin_view(schedule), name="console_schedule"),
    path("admin/schedule/propose/", admin.site.admin_view(schedule_propose), name="console_schedule_propose"),
    path("admin/figures/", admin.site.admin_view(overview_figures), name="console_figures"),
    path("admin/start/", admin.site.admin_view(start), name="console_start"),
    path("admin/start/<slug:step>/", admin.site.admin_view(start_step), name="console_start_step"),
    path("admin/", admin.site.urls),
    path("accounts/", include("governance.identity.web.urls")),  # before the people's: it has a page of theirs
    path("accounts/", include("governance.people.web.urls")),
    path("scim/v2/", include("governance.identity.api.scim_urls")),
    path("review/", include("attempts.web_urls")),
    path("integrations/slack/<uuid:workspace_id>", SlackCallbackView.as_view(), name="slack_callback"),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("api/v1/", include("reasoncodes.urls")),
    path("api/v1/", include("governance.urls")),
    path("api/v1/", include("attempts.urls")),
    path("api/v1/", include("workflows.urls")),
    path("health", health, name="health"),
    path("health/ready", health_ready, name="health_ready"),
    path("metrics", metrics, name="metrics"),
    path("problems/", problem_index, name="problem_index"),
    path("problems/<slug:code>", problem_page, name="problem_page"),
]
