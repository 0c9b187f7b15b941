"""The two three-step workflows that are measured, and the answers of their modules. Plain values without Django."""

from typing import Any

CONSENT = ("consent.check.completed", {"granted": True, "missing_types": []})
IMAGES = ("case.images_check.completed", {"count": 3, "passed": True, "image_ids": []})
STATUS = ("case.set_status.completed", {"previous_status": "open", "new_status": "closed"})
END: dict[str, Any] = {
    "done": {"kind": "emit_final", "params": {"include_diagnoses": True}, "transitions": {"on_complete": "TERMINAL"}},
}
HALT: dict[str, Any] = {"stop": {"kind": "halt", "params": {"reason_code": "consent_missing"}}}


def consent(following: str) -> dict[str, Any]:
    step = {"kind": "gate_on_consent", "params": {"types": ["ai_analysis"]}, "timeout_seconds": 60}
    return step | {"transitions": {"on_pass": following, "on_fail": "stop"}}


def images(following: str) -> dict[str, Any]:
    step = {"kind": "require_images", "params": {"min_count": 3}, "timeout_seconds": 60}
    return step | {"transitions": {"on_pass": following, "on_fail": "stop"}}


def status(value: str, following: str) -> dict[str, Any]:
    step = {"kind": "set_case_status", "params": {"status": value}, "timeout_seconds": 300}
    return step | {"transitions": {"on_complete": following}}


# Each ends with the step for the final result, which every definition must have and which is governed like any other
# effect. It is not counted as one of the three steps.
FLOWS: dict[str, dict[str, Any]] = {
    "checks": {
        "name": "Three checks",
        "start_step": "one",
        "steps": {"one": consent("two"), "two": images("three"), "three": consent("done"), **END, **HALT},
    },
    "governed": {
        "name": "Three governed steps",
        "start_step": "one",
        "steps": {"one": status("a", "two"), "two": status("b", "three"), "three": status("c", "done"), **END},
    },
}
STEPS = ("one", "two", "three")
ANSWERS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "checks": (CONSENT, IMAGES, CONSENT),
    "governed": (STATUS, STATUS, STATUS),
}
# What each of a run's four events does: it requests the first step, the second, the third, or ends the run.
PARTS = ("start", "step", "step", "end")


def events(flow: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The four inputs of a run, in order."""
    return (("case.created", {"patient_id": "pat-1"}), *ANSWERS[flow])
