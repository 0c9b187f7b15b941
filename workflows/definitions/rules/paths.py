"""Whether a dotted path leads to something that the context contains when a step starts."""

from dataclasses import dataclass

from workflows.definitions.rules.findings import did_you_mean, nearest
from workflows.definitions.rules.reading import Reading
from workflows.kinds.base import ROOT_SHOWN, Json


@dataclass(frozen=True, slots=True)
class PathProblem:
    message: str
    suggestion: str = ""


def path_problem(reading: Reading, step_id: str, path: tuple[str, ...], *, required: bool) -> PathProblem | None:
    """`required`: nothing receives its absence, so the value must be there on every path to the step."""
    name, *fields = path
    if name in ROOT_SHOWN:
        return PathProblem(f"{name} is a plain value: write {name} alone.", name) if fields else None
    if name not in reading.steps:
        return _unknown(reading, step_id, path)
    if name not in reading.graph.before(step_id) and step_id in reading.graph.reachable:
        message = f"'{name}' does not run before this step. Use the output of a step that does."
        return PathProblem(message, _near(reading, step_id, path))
    if required and name not in reading.graph.certain(step_id):
        message = (
            f"Some path leads here without an output of '{name}'. "
            f"Write coalesce({'.'.join(path)}, <a default>), or let every path pass '{name}'."
        )
        return PathProblem(message)
    return _field_problem(reading, name, fields, required=required)


def schema_of(reading: Reading, path: tuple[str, ...]) -> Json | None:
    """What is known of the value at this path, or nothing."""
    if path[0] in ROOT_SHOWN:
        return {"type": "string"} if len(path) == 1 else None
    kind = reading.kind(path[0]) if path[0] in reading.steps else None
    schema = kind.output_schema if kind else {}
    for field in path[1:]:
        schema = _properties(schema).get(field, {})
    return schema or None


def _unknown(reading: Reading, step_id: str, path: tuple[str, ...]) -> PathProblem:
    suggestion = _near(reading, step_id, path)
    advice = did_you_mean(suggestion) or " Paths are written step.field, or case_id, org_id and product_id."
    return PathProblem(f"There is no step '{path[0]}' to read {'.'.join(path)} from.{advice}", suggestion)


def _field_problem(reading: Reading, name: str, fields: list[str], *, required: bool) -> PathProblem | None:
    kind = reading.kind(name)
    if kind is None:
        return None
    schema, so_far = kind.output_schema, name
    if not fields:
        known = [f"{name}.{field}" for field in schema["properties"]]
        return PathProblem(f"Name a field of '{name}': {', '.join(known) or 'it has none'}.", known[0] if known else "")
    for field in fields:
        properties = _properties(schema)
        if field not in properties:
            return _no_field(so_far, field, properties)
        if required and field not in schema.get("required", ()):
            path = f"{so_far}.{field}"
            return PathProblem(f"{path} may be missing. Write coalesce({path}, <a default>).", f"coalesce({path}, …)")
        schema, so_far = properties[field], f"{so_far}.{field}"
    return None


def _no_field(so_far: str, field: str, properties: Json) -> PathProblem:
    if not properties:
        return PathProblem(f"{so_far} has no fields inside that a condition could read.", so_far)
    near = nearest(field, properties)
    suggestion = f"{so_far}.{near}" if near else ""
    advice = did_you_mean(suggestion) or f" It has: {', '.join(properties)}."
    return PathProblem(f"{so_far} has no field '{field}'.{advice}", suggestion)


def _near(reading: Reading, step_id: str, path: tuple[str, ...]) -> str:
    """Among all that a condition in this step could read."""
    graph = reading.graph
    upstream = graph.certain(step_id) if step_id in graph.reachable else set(reading.steps)
    names = set(ROOT_SHOWN)
    for name in upstream - {step_id}:
        kind = reading.kind(name)
        names.update(f"{name}.{field}" for field in kind.output_schema["properties"]) if kind else names.add(name)
    return nearest(".".join(path), names)


def _properties(schema: Json) -> Json:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}
