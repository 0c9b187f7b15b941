"""The project's routes and the executors' ones, whether or not they are wired yet."""

from django.urls import include, path

from config.urls import handler400, handler404, handler500
from config.urls import urlpatterns as project

__all__ = ["handler400", "handler404", "handler500", "urlpatterns"]
urlpatterns = [path("api/v1/", include("attempts.api.execution")), *project]
