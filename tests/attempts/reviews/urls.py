"""The routes of reviews together with all others."""

from django.urls import include, path

from config.urls import urlpatterns as wired

urlpatterns = [path("api/v1/", include("attempts.api.reviews")), *wired]
