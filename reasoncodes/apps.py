"""Wiring of the app: after every migrate the table gets the system's reason codes."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ReasonCodesConfig(AppConfig):
    name = "reasoncodes"
    verbose_name = "Reason codes"

    def ready(self) -> None:
        post_migrate.connect(seed_system_codes, sender=self)


def seed_system_codes(**_: Any) -> None:
    from reasoncodes.services import system_codes_synchronise

    system_codes_synchronise()
