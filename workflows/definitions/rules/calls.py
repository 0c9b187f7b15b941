"""Resolves the calls of a definition in an organization's modules, and writes what it found into the version that is
stored. A run and its replay read that; nobody asks the registry again."""

from collections.abc import Mapping
from typing import Any

from workflows.definitions.rules.findings import DefinitionFinding, did_you_mean, is_plain, nearest
from workflows.kinds.base import Json
from workflows.modules.rules.fit import OfferedModule, returns_misfits, send_misfits

KIND = "call_service"
PINNED = "pinned"
"""The param that publication adds. Nobody writes it: the kind's schema does not have it."""


def call_steps(document: Any) -> dict[str, Json]:
    """The steps that call a module, by id. Of a document that may have any shape."""
    steps = document.get("steps") if isinstance(document, dict) else None
    found = steps.items() if isinstance(steps, dict) else ()
    return {
        step_id: step
        for step_id, step in found
        if isinstance(step, dict) and step.get("kind") == KIND and isinstance(step.get("params"), dict)
    }


def call_findings(document: Any, offered: Mapping[str, OfferedModule]) -> list[DefinitionFinding]:
    """Of every call: the module and the operation exist, what is sent and expected fits, and retries are safe."""
    found: list[DefinitionFinding] = []
    for step_id, step in call_steps(document).items():
        if is_plain(step_id):  # any other name is a finding of its own, and must not be repeated
            found += _step_findings(f"/steps/{step_id}", step, offered)
    return found


def _step_findings(at: str, step: Json, offered: Mapping[str, OfferedModule]) -> list[DefinitionFinding]:
    params = step["params"]
    module = offered.get(_text(params, "module"))
    if module is None:
        suggestion = nearest(_text(params, "module"), offered)
        known = f" Known are: {', '.join(sorted(offered))}." if offered else " None is registered."
        words = "No module of this name is registered and active here." + (did_you_mean(suggestion) or known)
        return [DefinitionFinding("module_known", f"{at}/params/module", words, suggestion)]
    name = _text(params, "operation")
    operation = module.operations.get(name)
    if operation is None:
        suggestion = nearest(name, module.operations)
        known = f" It offers: {', '.join(sorted(module.operations)) or 'none'}."
        words = "The module has no operation of this name." + (did_you_mean(suggestion) or known)
        return [DefinitionFinding("operation_known", f"{at}/params/operation", words, suggestion)]
    return [
        *_fit_findings("send_fits", f"{at}/params/send", _send_misfits(params, operation)),
        *_fit_findings("returns_fit", f"{at}/params/returns", _returns_misfits(params, operation)),
        *_retry_findings(at, step, operation),
    ]


def _text(params: Json, name: str) -> str:
    value = params.get(name)
    return value if isinstance(value, str) else ""


def _send_misfits(params: Json, operation: Json) -> list[tuple[str, str]]:
    return send_misfits(template=params.get("send", {}), accepted=operation["send"])


def _returns_misfits(params: Json, operation: Json) -> list[tuple[str, str]]:
    expected = params.get("returns")
    if not isinstance(expected, dict):
        return []  # the shape of `returns` itself is judged with the other params
    return returns_misfits(declared=operation["returns"], expected=expected)


def _fit_findings(rule: str, at: str, misfits: list[tuple[str, str]]) -> list[DefinitionFinding]:
    return [DefinitionFinding(rule, at + pointer, f"This {words}.") for pointer, words in misfits]


def _retry_findings(at: str, step: Json, operation: Json) -> list[DefinitionFinding]:
    retries = step.get("max_retries", 0)
    if operation["effect"] != "once" or not isinstance(retries, int) or retries < 1:
        return []
    words = "The operation has effect once, so it is never tried again. Set max_retries to 0."
    return [DefinitionFinding("effect_once_no_retry", f"{at}/max_retries", words, "0")]


def document_pinned(document: Json, offered: Mapping[str, OfferedModule]) -> Json:
    """The document with what its calls resolve to. A call that resolves to nothing stays as written. Without calls it
    is the same object."""
    pins = {step_id: _pin(step["params"], offered) for step_id, step in call_steps(document).items()}
    pins = {step_id: pin for step_id, pin in pins.items() if pin is not None}
    if not pins:
        return document
    steps = dict(document["steps"])
    for step_id, pin in pins.items():
        steps[step_id] = steps[step_id] | {"params": steps[step_id]["params"] | {PINNED: pin}}
    return document | {"steps": steps}


def _pin(params: Json, offered: Mapping[str, OfferedModule]) -> Json | None:
    module = offered.get(_text(params, "module"))
    operation = module.operations.get(_text(params, "operation")) if module else None
    if module is None or operation is None:
        return None
    return {
        "version": module.version,
        "transport": module.transport,
        "effect": operation["effect"],
        "method": operation["method"],
        "path": operation["path"],
    }
