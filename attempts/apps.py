"""App registration: hands the rows of attempts to evidence bundles, exports and erasures in governance."""

from django.apps import AppConfig


class AttemptsConfig(AppConfig):
    name = "attempts"

    def ready(self) -> None:
        from attempts.selectors.evidence import AttemptCollector
        from attempts.selectors.retention import ATTEMPT, LEFT_OUT, export_tables
        from governance.collectors import register_collector
        from governance.states import EvidenceKind
        from governance.subjects import register_export, register_kind

        register_collector(EvidenceKind.ATTEMPT, AttemptCollector())
        register_kind(ATTEMPT)
        register_export(export_tables(), left_out=LEFT_OUT)
