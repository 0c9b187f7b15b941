"""Registers the adapters, and what governance needs from this app: evidence, retention and exports of attempts, ledger
actions, and what ends when a person leaves."""

from django.apps import AppConfig


class AttemptsConfig(AppConfig):
    name = "attempts"

    def ready(self) -> None:
        from attempts.execution.adapters.base import register_adapters
        from attempts.execution.adapters.email import EmailAdapter
        from attempts.execution.adapters.event import EventAdapter
        from attempts.execution.adapters.external import ExternalAdapter
        from attempts.execution.adapters.http import HttpAdapter
        from attempts.execution.adapters.slack import SlackAdapter
        from attempts.lifecycle.hooks import on_attempt_stopped
        from attempts.lifecycle.selectors.evidence import AttemptCollector
        from attempts.lifecycle.selectors.retention import ATTEMPT, LEFT_OUT, attempt_export_tables
        from attempts.notify.services.cases import case_opened
        from attempts.notify.services.chat_workspace import SIGNING, TOKEN
        from attempts.quarantine.services.open import on_case_opened
        from attempts.reviews.services.decide import review_cancel
        from attempts.reviews.services.delegate import delegations_end_for
        from attempts.reviews.services.leave import reviews_give_back
        from attempts.reviews.web.asked_before import asked_before_panel
        from attempts.reviews.web.held_again import held_again_panel
        from attempts.reviews.web.panels import register_panel
        from governance.evidence.hooks import register_collector
        from governance.evidence.states import EvidenceKind
        from governance.ledger.rules.actions import register_actions
        from governance.outside.secret_box import SealedColumn, register_sealed
        from governance.people.hooks import on_standing_lost, register_work_release
        from governance.retention.hooks import register_export, register_kind

        register_adapters(EventAdapter(), HttpAdapter(), EmailAdapter(), SlackAdapter(), ExternalAdapter())
        register_work_release(reviews_give_back)
        register_panel(held_again_panel)
        register_panel(asked_before_panel)
        on_attempt_stopped(review_cancel)
        register_collector(EvidenceKind.ATTEMPT, AttemptCollector())
        register_kind(ATTEMPT)
        on_standing_lost(delegations_end_for)
        on_case_opened(case_opened)
        register_sealed(
            SealedColumn("attempts.ChatWorkspace", "bot_token_sealed", TOKEN),
            SealedColumn("attempts.ChatWorkspace", "signing_secret_sealed", SIGNING),
        )
        register_actions(
            {
                "notification_route.created": "made a notification route",
                "notification_route.disabled": "disabled a notification route",
                "notification_route.enabled": "enabled a notification route",
                "chat_workspace.connected": "connected a chat workspace",
                "chat_workspace.secrets_replaced": "replaced the secrets of a chat workspace",
                "chat_workspace.disabled": "disabled a chat workspace",
                "shutdown.proposed": "proposed a shutdown: too many attempts of the contract went to quarantine",
                "shutdown.proposal_engaged": "engaged the proposed shutdown",
                "shutdown.proposal_dismissed": "dismissed the proposed shutdown",
                "chat_identity.linked": "linked a chat account to a person",
                "chat_identity.unlinked": "ended the link of a chat account to a person",
            }
        )
        register_export(attempt_export_tables(), left_out=LEFT_OUT)
