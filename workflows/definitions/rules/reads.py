"""Where a document of format 2 has expressions, and what each of them can read there. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from governance.conditions import ConditionError, ValueExpression, compile_expression
from governance.conditions.values import ARRAY, BOOLEAN, INSTANT, NUMBER, STRING
from workflows.definitions.rules.blocks import BlockReading, Body
from workflows.definitions.rules.findings import did_you_mean, nearest
from workflows.definitions.rules.inference import UNKNOWN, Type, infer, item_type, schema_type, type_schema
from workflows.definitions.rules.paths import PathProblem
from workflows.definitions.rules.visible import Visible
from workflows.kinds.base import FOR_EACH, LOOP, ROOT_SHOWN, Json
from workflows.kinds.template import expressions

INPUT, ITEM, ROUND = "input", "item", "round"
# What a step of format 2 cannot be called, besides what is reserved in both formats.
RESERVED_STEPS = (INPUT, ITEM, ROUND)
_TEXTS = frozenset({STRING, NUMBER, BOOLEAN})
_SCALARS = frozenset({STRING, NUMBER, BOOLEAN, INSTANT})
_ANYTHING: frozenset[str] = frozenset()
# Kind, param: what its expression must give. Of `values` and `match` every field is one.
_EXPRESSIONS = {
    ("loop", "while"): (frozenset({BOOLEAN}), "What while says"),
    ("for_each", "over"): (frozenset({ARRAY}), "What over goes through"),
    ("delay", "until"): (frozenset({STRING, INSTANT}), "What until says"),
    ("assign", "values"): (_ANYTHING, "A value"),
    ("wait_for_event", "match"): (_SCALARS, "What match compares with"),
    ("wait_for_histology", "match"): (_SCALARS, "What match compares with"),
}
_TEMPLATES = {("call_service", "send"), ("human_task", "facts"), ("subflow", "input")}
# Outputs that only another document knows.
_OPEN = frozenset({"subflow"})


@dataclass(frozen=True, slots=True)
class Site:
    """One expression. `step` is empty for an output of the run; `wanted` empty: any kind of value."""

    step: str
    place: tuple[str | int, ...]  # in the step's params, or in the document
    source: str
    wanted: frozenset[str]
    what: str

    def pointer(self, reading: BlockReading) -> str:
        return reading.param_pointer(self.step, *self.place) if self.step else reading.pointer(*self.place)


class Reads:
    def __init__(self, reading: BlockReading) -> None:
        self.reading = reading
        self.visible = Visible(reading)
        self._types: dict[str, Type] = {}

    @cached_property
    def sites(self) -> list[Site]:
        return [*self._of_steps(), *self._of_output()]

    def compiled(self) -> Iterator[tuple[Site, ValueExpression]]:
        """Those that can be parsed and that some path leads to: of the others nothing more can be said."""
        for site in self.sites:
            if site.step and site.step not in self.reading.entered:
                continue
            try:
                yield site, compile_expression(site.source)
            except ConditionError:
                continue

    def _of_steps(self) -> Iterator[Site]:
        for step, _, kind in self.reading.of_kind():
            params = self.reading.params(step)
            for param, value in params.items():
                wanted = _EXPRESSIONS.get((kind.name, param))
                if param in kind.expressions and wanted is None:
                    wanted = (frozenset({BOOLEAN}), "A condition")
                if wanted is not None:
                    yield from _sites(step, param, value, wanted)
                elif param in kind.templates or (kind.name, param) in _TEMPLATES:
                    yield from _template_sites(step, param, value)

    def _of_output(self) -> Iterator[Site]:
        output = self.reading.document.get("output")
        for name, source in output.items() if isinstance(output, dict) else ():
            if isinstance(source, str):
                yield Site("", ("output", name), source, _ANYTHING, "An output")

    # --- what it can read ---

    def certain(self, site: Site) -> set[str]:
        if not site.step:
            return self.visible.certain_at_end()
        body = self._round_of(site)
        return self.visible.certain_in_round(body) if body else self.visible.certain(site.step)

    def possible(self, site: Site) -> set[str]:
        if not site.step:
            return self.visible.possible_at_end()
        body = self._round_of(site)
        return self.visible.possible_in_round(body) if body else self.visible.possible(site.step)

    def _round_of(self, site: Site) -> Body | None:
        """`while` is asked inside a round, when it has ended."""
        held = self.reading.blocks.held_by(site.step) if site.place[:1] == ("while",) else []
        return next((body for body in held if body.shape == LOOP), None)

    def _inside(self, site: Site) -> list[Body]:
        body = self._round_of(site)
        around = self.reading.blocks.inside(site.step) if site.step else []
        return [body, *around] if body else around

    def type_of(self, site: Site, path: tuple[str, ...]) -> Type:
        found = self._root_type(site, path[0])
        for name in path[1:]:
            found = field_type(found, name)
        return found

    def _root_type(self, site: Site, name: str) -> Type:
        if name in self.reading.steps:
            return self.step_type(name)
        if name in ROOT_SHOWN:
            return Type(frozenset({STRING}))
        if name == INPUT:
            return schema_type(self.reading.document.get("input"))
        if name == ROUND:
            return Type(frozenset({NUMBER}), whole=True)
        bodies = [body for body in self._inside(site) if body.shape == FOR_EACH]
        return self.items_of(bodies[0].block) if name == ITEM and bodies else UNKNOWN

    def items_of(self, step: str) -> Type:
        """The type of `item` in the body of a for_each."""
        return item_type(self.over(step))

    def over(self, step: str) -> Type:
        source = self.reading.params(step).get("over")
        if not isinstance(source, str):
            return UNKNOWN
        return self._inferred(Site(step, ("over",), source, _ANYTHING, ""))

    def step_type(self, step: str) -> Type:
        """Of the step's output."""
        if step not in self._types:
            self._types[step] = UNKNOWN  # for a step that reads itself, in a circle
            self._types[step] = self._step_type(step)
        return self._types[step]

    def _step_type(self, step: str) -> Type:
        kind, values = self.reading.kind(step), self.reading.params(step).get("values")
        if kind is None or (kind.name in _OPEN and not kind.output_schema.get("properties")):
            return UNKNOWN
        if kind.name != "assign" or not isinstance(values, dict):
            return schema_type(kind.output_schema)
        fields: Json = {}
        for name, source in values.items():
            site = Site(step, ("values", name), source if isinstance(source, str) else "", _ANYTHING, "")
            fields[name] = type_schema(self._inferred(site)) or {}
        return schema_type(
            {"type": "object", "additionalProperties": False, "required": list(fields), "properties": fields}
        )

    def _inferred(self, site: Site) -> Type:
        try:
            expression = compile_expression(site.source).expression
        except ConditionError:
            return UNKNOWN
        return infer(expression, lambda path: self.type_of(site, path))

    # --- whether a path leads to a value ---

    def path_problem(self, site: Site, path: tuple[str, ...], *, required: bool) -> PathProblem | None:
        """`required`: nothing receives its absence, so the value must be there on every path."""
        problem = self._root_problem(site, path, required=required)
        if problem is not None:
            return problem
        found, so_far = self._root_type(site, path[0]), path[0]
        for name in path[1:]:
            problem = _field_problem(found, so_far, name, required=required)
            if problem is not None or not found.is_known:
                return problem
            found, so_far = field_type(found, name), f"{so_far}.{name}"
        return None

    def _root_problem(self, site: Site, path: tuple[str, ...], *, required: bool) -> PathProblem | None:
        name = path[0]
        if name in ROOT_SHOWN or (name == ROUND and self._is_inside(site, LOOP)):
            return PathProblem(f"{name} is a plain value: write {name} alone.", name) if path[1:] else None
        if name == INPUT:
            declared = isinstance(self.reading.document.get("input"), dict)
            return None if declared else PathProblem("This workflow declares no input. Add its schema as input.")
        if name == ITEM:
            inside = self._is_inside(site, FOR_EACH)
            return None if inside else PathProblem("item exists inside the body of a for_each only.")
        if name == ROUND:
            return PathProblem("round exists inside the body of a loop, and in its while, only.")
        return self._step_problem(site, path, required=required)

    def _is_inside(self, site: Site, shape: str) -> bool:
        return any(body.shape == shape for body in self._inside(site))

    def _step_problem(self, site: Site, path: tuple[str, ...], *, required: bool) -> PathProblem | None:
        name = path[0]
        if name not in self.reading.steps:
            near = nearest(".".join(path), self._names(site)) or nearest(name, self._names(site))
            advice = did_you_mean(near) or " Paths are written step.field, input.field, case_id, org_id or product_id."
            return PathProblem(f"There is no step '{name}' to read {'.'.join(path)} from.{advice}", near)
        if name not in self.possible(site):
            return PathProblem(self._out_of_sight(site, name), nearest(".".join(path), self._names(site)))
        if required and name not in self.certain(site):
            message = (
                f"Some path leads here without an output of '{name}'. "
                f"Write coalesce({'.'.join(path)}, <a default>), or let every path pass '{name}'."
            )
            return PathProblem(message)
        return None

    def _out_of_sight(self, site: Site, name: str) -> str:
        here = self.reading.blocks.of.get(site.step)
        there = self.reading.blocks.of.get(name)
        if there is None or there.is_root or there == here:
            return f"'{name}' does not run before this step. Use the output of a step that does."
        return f"'{name}' runs in {there.words}, and its output cannot be seen here."

    def _names(self, site: Site) -> set[str]:
        """All that could be written here."""
        names = set(ROOT_SHOWN)
        roots = {*self.possible(site), *([INPUT] if isinstance(self.reading.document.get("input"), dict) else [])}
        roots |= {ITEM} if self._is_inside(site, FOR_EACH) else set()
        names |= {ROUND} if self._is_inside(site, LOOP) else set()
        for root in roots:
            fields = _properties(self._root_type(site, root))
            names |= {f"{root}.{field}" for field in fields} or {root}
        return names


class TypedReading(BlockReading):
    """A reading of a document of format 2 that also knows its expressions."""

    @cached_property
    def reads(self) -> Reads:
        return Reads(self)


def field_type(found: Type, name: str) -> Type:
    return schema_type(_properties(found).get(name))


def _properties(found: Type) -> Json:
    properties = (found.schema or {}).get("properties")
    return properties if isinstance(properties, dict) else {}


def _field_problem(found: Type, so_far: str, name: str, *, required: bool) -> PathProblem | None:
    if not found.is_known:
        return None
    if not found.kinds & {"object"}:
        return PathProblem(f"{so_far} has no fields inside that an expression could read.", so_far)
    if found.kinds - {"object", "null"}:
        return PathProblem(f"{so_far} need not be an object, so its fields cannot be read.", so_far)
    return _member_problem(found, so_far, name, required=required)


def _member_problem(found: Type, so_far: str, name: str, *, required: bool) -> PathProblem | None:
    properties, schema = _properties(found), found.schema or {}
    if name not in properties:
        near = nearest(name, properties)
        suggestion = f"{so_far}.{near}" if near else ""
        advice = did_you_mean(suggestion) or f" It has: {', '.join(properties) or 'none'}."
        return PathProblem(f"{so_far} has no field '{name}'.{advice}", suggestion)
    path = f"{so_far}.{name}"
    given = schema.get("required")
    if required and (name not in (given if isinstance(given, list) else ()) or "null" in found.kinds):
        return PathProblem(f"{path} may be missing. Write coalesce({path}, <a default>).", f"coalesce({path}, …)")
    return None


def _sites(step: str, param: str, value: object, wanted: tuple[frozenset[str], str]) -> Iterator[Site]:
    if isinstance(value, str):
        yield Site(step, (param,), value, *wanted)
    elif isinstance(value, dict):
        for name, source in value.items():
            if isinstance(source, str):
                yield Site(step, (param, name), source, *wanted)


def _template_sites(step: str, param: str, template: object) -> Iterator[Site]:
    try:
        found = list(expressions(template))
    except ConditionError:
        return  # `templates_closed` says where
    for where, source, whole in found:
        wanted = _ANYTHING if whole else _TEXTS | {INSTANT}
        yield Site(step, (param, *where), source, wanted, "What stands inside a text")
