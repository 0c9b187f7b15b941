"""How runs of a document begin: with a case, or only by a request that names the definition; and what the request must
bring. Pure."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from workflows.definitions.rules.document import Definition, format_of
from workflows.kinds.base import Checker, Json, ShapeProblem
from workflows.kinds.shapes import closed

NOTHING: Json = closed({})  # without an input schema a run brings nothing


def takes_cases(document: Mapping[str, Any]) -> bool:
    """Whether `case.created` may start it. That event brings no input, so the document's schema must need none."""
    schema = document.get("input")
    return format_of(document) == 1 or not isinstance(schema, dict) or not _checker(json.dumps(schema)).problems({})


def input_problems(definition: Definition, given: Any, *, base: str = "") -> list[ShapeProblem]:
    """Everything that does not fit the definition's input schema."""
    return _checker(json.dumps(definition.input or NOTHING)).problems(given, base=base)


# By text and not by object: definitions are parsed again and again, and compiled schemas must not pile up.
@lru_cache(maxsize=256)
def _checker(schema: str) -> Checker:
    return Checker(json.loads(schema))
