"""Does an output fit its kind's schema? Validators are made once per schema."""

import json
from functools import lru_cache
from typing import Any

import jsonschema_rs


def fits(schema: dict[str, Any], value: Any) -> bool:
    return bool(_validator(json.dumps(schema, sort_keys=True)).is_valid(value))


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for(json.loads(schema))
