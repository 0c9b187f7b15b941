"""Registers this app's handlers with the apps below it: attempts and reviews of steps, publishing by two people,
erasure, the review page; and finds step kinds of other apps."""

from datetime import datetime
from importlib import import_module
from typing import Any
from uuid import UUID

from django.apps import AppConfig, apps
from django.conf import settings
from django.db.models.signals import post_migrate
from django.utils import timezone
from django.utils.module_loading import module_has_submodule


class WorkflowsConfig(AppConfig):
    name = "workflows"
    verbose_name = "Workflows"

    def ready(self) -> None:
        from attempts.lifecycle.hooks import on_attempt_moved, on_review_ended, on_step_ready
        from attempts.reviews.web.panels import register_panel
        from governance.authority.hooks import register_act
        from governance.evidence.hooks import register_collector
        from governance.evidence.states import EvidenceKind
        from governance.ledger.rules.actions import register_actions
        from governance.retention.hooks import register_export, register_kind
        from governance.retention.services.erasure import on_erased
        from workflows.definitions.services.proposal import DefinitionPublish
        from workflows.events.services.outbox import on_call, on_published
        from workflows.kinds.assign_reviewer import KIND as ASSIGN_REVIEWER
        from workflows.kinds.registry import discover
        from workflows.modules.configured import module_private_hosts
        from workflows.modules.services.calls import calls_make
        from workflows.modules.services.proposal import ModuleChange, ModuleRegister
        from workflows.runs.rules import ACTIONS
        from workflows.runs.selectors.evidence import InstanceCollector
        from workflows.runs.selectors.retention import EVENT, LEFT_OUT, RUN, workflow_export_tables
        from workflows.runs.services.people import reviewer_assign
        from workflows.runs.services.performers import performer_register
        from workflows.runs.services.signal import signal_attempt_moved, signal_review_ended
        from workflows.runs.services.signal_follow import step_resume
        from workflows.runs.web import case_panel
        from workflows.webhooks.services.gather import deliveries_erase, outbox_told

        def ready_now(attempt_id: UUID, at: datetime) -> None:
            step_resume(attempt_id=attempt_id, at=at, region=settings.DEPLOYMENT_REGION)

        register_act("definition.publish", DefinitionPublish())
        register_act("module.register", ModuleRegister(module_private_hosts))
        register_act("module.change", ModuleChange(module_private_hosts))
        register_actions(ACTIONS)
        register_collector(EvidenceKind.INSTANCE, InstanceCollector())
        register_kind(RUN)
        register_kind(EVENT)
        register_export(workflow_export_tables(), left_out=LEFT_OUT)
        post_migrate.connect(adopt_templates, sender=self)
        on_attempt_moved(signal_attempt_moved)
        on_review_ended(signal_review_ended)
        on_step_ready(ready_now)
        performer_register(ASSIGN_REVIEWER.name, reviewer_assign)
        register_panel(case_panel)
        on_published(outbox_told)
        on_call(calls_make)
        on_erased(deliveries_erase)
        for config in apps.get_app_configs():
            if module_has_submodule(config.module, "step_kinds"):
                discover(import_module(f"{config.name}.step_kinds"))


def adopt_templates(**_: Any) -> None:
    from workflows.definitions.services.create import templates_adopt

    templates_adopt(at=timezone.now())
