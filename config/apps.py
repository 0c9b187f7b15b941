"""Start-up wiring: logging, and the beat schedule written to its tables after every migrate."""

from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.db.models.signals import post_migrate


class ConfigConfig(AppConfig):
    name = "config"
    label = "config"

    def ready(self) -> None:
        from config import checks, trace_context  # noqa: F401  registers system checks and Celery signals
        from config.logs import configure_logging

        configure_logging(level=settings.LOG_LEVEL)
        # Django sends the signal for apps with models only: ours is listened to through the app whose tables it fills.
        post_migrate.connect(synchronise_schedule, sender=apps.get_app_config("django_celery_beat"))


def synchronise_schedule(**_: Any) -> None:
    from config.schedule import schedule_synchronise

    schedule_synchronise()
