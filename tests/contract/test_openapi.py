"""The OpenAPI document is the truth: schemathesis tries all of it, and nothing undocumented comes back, nor a 5xx."""

from collections.abc import Iterator
from typing import Any

from config.api.problems import MESSAGES
from tests.contract.fuzzing import Fuzzing, Spared
from tests.contract.world import World

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


def shape_is_refused(body: dict[str, Any]) -> bool:
    """By the serializers, whose rules are the words of config.api.problems.MESSAGES; services have their own."""
    return any(error.get("rule") in MESSAGES for error in body.get("errors", ()))


SPARED = (
    Spared(
        "positive_data_acceptance",
        "Texts are trimmed and have no NUL: said once in docs/api.md, not as a pattern at every field.",
        lambda case, _: any("\x00" in text or not text.strip() for text in texts([case.body, dict(case.query or {})])),
    ),
    Spared(
        "positive_data_acceptance",
        "A 400 about what it means here (a code that is not known, either this or that) and not about its shape.",
        lambda _, response: response.status_code == 400 and not shape_is_refused(response.json()),
    ),
    Spared(
        "unsupported_method",
        "To change the record is a broken rule, which is recorded, and no unknown method.",
        lambda _, response: problem(response) == "record-immutable",
    ),
)


def config(count: int, **phases: bool) -> dict[str, Any]:
    off = {"extra-data-sources": {"responses": False}}
    return {
        "seed": 7,
        "workers": 1,
        "continue-on-failure": True,
        "generation": {"max-examples": count, "no-shrink": True, "deterministic": True, "database": "none"},
        "phases": {
            "examples": {"enabled": phases.get("examples", False), **off},
            "coverage": {"enabled": phases.get("coverage", False), **off},
            "fuzzing": {"enabled": phases.get("fuzzing", False), **off, "error-feedback": {"enabled": False}},
            "stateful": {"enabled": phases.get("stateful", False)},
        },
        "checks": CHECKS,
    }


def test_examples_and_every_boundary_of_every_parameter(world: World) -> None:
    found = Fuzzing(world, config(1, examples=True, coverage=True), SPARED).run()
    assert not found.findings, found.report()
