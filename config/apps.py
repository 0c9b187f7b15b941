"""Start-up wiring: logging, and the beat schedule written to its tables after every migrate."""

from typing import Any

from allauth.account.apps import AccountConfig
from django.apps import AppConfig, apps
from django.conf import settings
from django.db.models import Model
from django.db.models.signals import class_prepared, post_migrate
from django_fsm import FSMFieldMixin


class ConfigConfig(AppConfig):
    name = "config"
    label = "config"

    def ready(self) -> None:
        from config import checks, trace_context  # noqa: F401  registers system checks and Celery signals
        from config.error_tracker import tracker_start
        from config.logs import configure_logging
        from config.safety import refuse_unsafe
        from config.tracing import tracing_start

        configure_logging(level=settings.LOG_LEVEL)
        refuse_unsafe(settings)
        tracing_start()
        tracker_start()
        # Django sends the signal for apps with models only: ours is listened to through the app whose tables it fills.
        post_migrate.connect(synchronise_schedule, sender=apps.get_app_config("django_celery_beat"))
        class_prepared.connect(forget_historical_fields)


def synchronise_schedule(**_: Any) -> None:
    from config.schedule import schedule_synchronise

    schedule_synchronise()


def forget_historical_fields(sender: type[Model], **_: Any) -> None:
    """A model of a migration has no transitions. django-fsm would go on asking its fields about every model that comes
    later, which was nearly half of the time that `migrate` took."""
    if sender.__module__ == "__fake__":
        for field in sender._meta.local_fields:
            if isinstance(field, FSMFieldMixin):
                class_prepared.disconnect(field._collect_transitions)


class SignInConfig(AccountConfig):
    """allauth insists on its middleware for every request; ours runs it where people are (config.middleware.people)."""

    def ready(self) -> None:
        from allauth.account import checks  # noqa: F401
