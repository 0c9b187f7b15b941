"""The case behind a review: where its run stands, as a picture and as a list of steps."""

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from attempts.reviews.web.panels import Panel
from workflows.runs.selectors.pictures import run_picture
from workflows.runs.selectors.run import instance_steps, step_instance


def case_panel(review: Review, attempt: Attempt | None) -> Panel | None:
    """For reviews of a workflow's step and for held requests of one; None for an attempt that stands alone."""
    step_id = review.origin_step or (attempt.origin_step if attempt is not None else None)
    instance = step_instance(step_id=step_id) if step_id is not None else None
    if instance is None:
        return None
    steps = instance_steps(instance_id=instance.id)
    context = {"instance": instance, "steps": steps, "picture": run_picture(instance, steps=steps), "asking": step_id}
    return Panel("The case so far", "review/panels/case.html", context)
