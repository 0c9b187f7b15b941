"""App registration: hands what can be erased and exported here down to governance."""

from django.apps import AppConfig


class AttemptsConfig(AppConfig):
    name = "attempts"

    def ready(self) -> None:
        from attempts.selectors.retention import ATTEMPT, LEFT_OUT, export_tables
        from governance.subjects import register_export, register_kind

        register_kind(ATTEMPT)
        register_export(export_tables(), left_out=LEFT_OUT)
