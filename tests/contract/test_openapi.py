"""The OpenAPI document is the truth: schemathesis tries all of it, and nothing undocumented comes back, nor a 5xx."""

from collections.abc import Iterator
from time import time
from typing import Any

import pytest

from config.api.problems import MESSAGES
from tests.contract.fuzzing import Fuzzing, Spared
from tests.contract.world import World, undone

# All checks are on. What a request that fits the document may be told: that it makes no sense here and now.
CHECKS: dict[str, Any] = {
    "positive_data_acceptance": {
        "expected-statuses": ["2xx", "403", "404", "409", "410", "412", "422", "429"],
    },
}


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


def problem(response: Any) -> str:
    return str(response.json().get("type", "")).rsplit("/", 1)[-1]


def shape_is_refused(response: Any) -> bool:
    """By the serializers, whose rules are the words of config.api.problems.MESSAGES; services have their own."""
    errors = response.json().get("errors", ())
    return problem(response) == "invalid-input" and any(error.get("rule") in MESSAGES for error in errors)


# One request is not enough for them: the state, or a second person, is in the way, and tests of their own take it away.
NEVER_WELL: set[str] = {
    "POST /api/v1/shutdowns/{shutdown_id}/break-glass",
    "POST /api/v1/authority-changes",
    "POST /api/v1/identity-providers",
    "POST /api/v1/authority-changes/{change_id}/confirm",
    "POST /api/v1/authority-changes/{change_id}/decline",
    "POST /api/v1/authority-changes/{change_id}/withdraw",
    "POST /api/v1/reviews/{review_id}/signature-challenge",
    "POST /api/v1/workflow-definitions/{definition_id}/migrate",
    "POST /api/v1/workflow-definitions/{definition_id}/unpublish",
}

SPARED = (
    Spared(
        "positive_data_acceptance",
        "Texts are trimmed and have no NUL: said once in docs/api.md, not as a pattern at every field.",
        lambda case, _: any("\x00" in text or not text.strip() for text in texts([case.body, dict(case.query or {})])),
    ),
    Spared(
        "positive_data_acceptance",
        "A 400 about what it means here (a code that is not known, either this or that) and not about its shape.",
        lambda _, response: response.status_code == 400 and not shape_is_refused(response),
    ),
    Spared(
        "unsupported_method",
        "To change the record is a broken rule, which is recorded, and no unknown method.",
        lambda _, response: problem(response) == "record-immutable",
    ),
)


def config(count: int, *phases: str, seed: int = 7) -> dict[str, Any]:
    """One worker, no feedback from answers: the same requests every time."""
    fixed = {"extra-data-sources": {"responses": False}}
    unknown_methods = {"unexpected-methods": ["put", "patch", "delete", "trace"]}
    return {
        "seed": seed,
        "workers": 1,
        "continue-on-failure": True,
        "generation": {"max-examples": count, "no-shrink": True, "deterministic": seed == 7, "database": "none"},
        "phases": {
            "examples": {"enabled": "examples" in phases, **fixed},
            "coverage": {"enabled": "coverage" in phases, **fixed, **unknown_methods},
            "fuzzing": {"enabled": "fuzzing" in phases, **fixed, "error-feedback": {"enabled": False}},
            "stateful": {"enabled": "stateful" in phases, "max-steps": 6},
        },
        "checks": CHECKS,
    }


def test_its_examples_and_every_boundary_of_every_parameter(world: World) -> None:
    """Each operation with its examples, and with each parameter and field at, inside and outside its limits."""
    found = Fuzzing(world, config(1, "examples", "coverage"), SPARED, brief=True).run()
    assert not found.findings, found.report()
    never = [label for label, statuses in found.reached.items() if not any(200 <= code < 300 for code in statuses)]
    assert set(never) <= NEVER_WELL, f"not one good answer from {sorted(set(never) - NEVER_WELL)}"
    assert len(found.reached) == sum(len(path) for path in found.document["paths"].values())


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_boundary_at_every_operation(world: World) -> None:
    """Also of what all operations share, such as `org_id` and the methods that an address does not answer."""
    found = Fuzzing(world, config(1, "coverage"), SPARED).run()
    assert not found.findings, found.report()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_whatever_is_sent(world: World) -> None:
    found = Fuzzing(world, config(100, "fuzzing", seed=int(time())), SPARED).run()
    assert not found.findings, found.report()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_one_request_after_another(world: World) -> None:
    """What was made can be read, and what was deleted is gone: nothing is rolled back between the requests."""
    with undone():
        found = Fuzzing(world, config(40, "stateful", seed=int(time())), SPARED, keeps=True).run()
    assert not found.findings, found.report()
