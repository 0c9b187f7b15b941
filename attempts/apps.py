"""App registration."""

from django.apps import AppConfig


class AttemptsConfig(AppConfig):
    name = "attempts"
