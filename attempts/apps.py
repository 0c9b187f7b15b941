"""App registration; hands the rows of attempts up to evidence bundles."""

from django.apps import AppConfig


class AttemptsConfig(AppConfig):
    name = "attempts"

    def ready(self) -> None:
        from attempts.selectors.evidence import AttemptCollector
        from governance.collectors import register_collector
        from governance.states import EvidenceKind

        register_collector(EvidenceKind.ATTEMPT, AttemptCollector())
