"""Start-up wiring: logging, the check of unsafe settings, tracing, the error tracker, and the schedule of tasks, which
is written to its tables after every migrate."""

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
        from config import (  # noqa: F401  registers system checks and Celery signals
            checks,
            clock,
            clocks,
            connections,
            lane_places,
            trace_context,
        )
        from config.celery import SCHEDULE, SCHEDULE_WORDS
        from config.due import DUE, SWEEP_SECONDS
        from config.error_tracker import tracker_start
        from config.logs import configure_logging
        from config.safety import refuse_unsafe
        from config.tracing import tracing_start
        from governance.schedule.hooks import register_schedule
        from governance.schedule.rules import ScheduledTask

        # First: whatever logs below must already go through our formatter, which leaves out values.
        configure_logging(level=settings.LOG_LEVEL)
        refuse_unsafe(settings)
        tracing_start()
        tracker_start()
        register_schedule(
            ScheduledTask(
                name,
                task,
                round(seconds),
                SCHEDULE_WORDS.get(name, ""),
                swept=SWEEP_SECONDS if name in DUE else 0.0,
            )
            for name, (task, seconds) in SCHEDULE.items()
        )
        # Django sends post_migrate only for apps with models. We have none, so we use the app whose tables we fill.
        post_migrate.connect(synchronise_schedule, sender=apps.get_app_config("django_celery_beat"))
        class_prepared.connect(forget_historical_fields)
        close_foreign_pages()


def close_foreign_pages() -> None:
    """Removes every page of the console that is not built on ours. Libraries register pages of their own, which filter
    by any column and change rows without our services. The admin has found all pages by now: its app stands before."""
    from django.contrib import admin

    from governance.console.admin.lists import ListPages

    for model, page in list(admin.site._registry.items()):
        if not isinstance(page, ListPages):
            admin.site.unregister(model)


def synchronise_schedule(**_: Any) -> None:
    from governance.schedule.services import schedule_synchronise

    schedule_synchronise()


def forget_historical_fields(sender: type[Model], **_: Any) -> None:
    """Disconnects django-fsm from models of migrations, which have no transitions."""
    # django-fsm would inspect each of these fields again for every later model: nearly half of the time of `migrate`.
    if sender.__module__ == "__fake__":
        for field in sender._meta.local_fields:
            if isinstance(field, FSMFieldMixin):
                class_prepared.disconnect(field._collect_transitions)


class SignInConfig(AccountConfig):
    """allauth requires its middleware for every request; we run it only for people's pages
    (config.middleware.people)."""

    def ready(self) -> None:
        from allauth.account import checks  # noqa: F401
