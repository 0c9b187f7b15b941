"""Tasks of modules: send due calls, and end those whose sender died. The rows decide whether there is something to do,
so a task may run twice, late or never."""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from reasoncodes.base.tenancy import every_tenant
from workflows.modules.services.calls import calls_expire
from workflows.modules.services.work import call_places, module_calls_work


@shared_task(name="workflows.tasks.module_calls_work")
def module_calls_work_task() -> None:
    module_calls_work(now=timezone.now, places=call_places(settings.LANE_PLACES["adapters"]))


@shared_task(name="workflows.tasks.module_calls_expire")
def module_calls_expire_task() -> None:
    with every_tenant():
        calls_expire(at=timezone.now())
