"""`manage.py replay_instance`: agrees with what is stored, and says what does not."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.run_support import in_status, retry_waits
from tests.workflows.running import Running
from workflows.runs.models import WorkflowInstance, WorkflowStep


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("replay_instance", *arguments, stdout=out)
    return out.getvalue()


def test_every_run_agrees_with_its_log(cast: Cast) -> None:
    running = Running(cast)
    for status in ("halted", "completed", "waiting_approval", "cancelled"):
        in_status(running, status)
    one = retry_waits(running)
    assert "1 instances replayed from 4 events, 0 differ." in run(str(one.id))
    assert "5 instances replayed" in run("--all")
    said = json.loads(run("--all", "--json"))
    assert (said["instances"], said["differing"]) == (5, [])
    in_status(running, "queued")
    assert "7 instances replayed" in run("--all")


@pytest.mark.tampers
def test_what_was_altered_is_named_and_the_exit_code_is_one(cast: Cast) -> None:
    running = Running(cast)
    one, two = in_status(running, "halted"), in_status(running, "completed")
    with every_tenant():
        WorkflowInstance.objects.filter(id=one.id).update(halt_reason="image_quality")
        WorkflowStep.objects.filter(instance=two, step_id="ai_review").update(output={"confidence": 1})
    out = StringIO()
    with pytest.raises(CommandError) as refused:
        call_command("replay_instance", "--all", stdout=out)
    assert refused.value.returncode == 1
    assert f"{one.id} differs in: halt_reason" in out.getvalue()
    assert f"{two.id} differs in: ai_review/1.output" in out.getvalue()
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("replay_instance", str(one.id), "--json", stdout=out)
    assert json.loads(out.getvalue())["differing"] == [{"instance_id": str(one.id), "differences": ["halt_reason"]}]


@pytest.mark.parametrize(
    "arguments",
    [[], ["--all", "0199a1c2-0000-7000-8000-000000000000"], ["seven"], ["0199a1c2-0000-7000-8000-000000000000"]],
)
def test_what_cannot_be_understood_is_refused(db: Any, arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        run(*arguments)
