"""What the validator of format 2 accepts can be evaluated: over random documents, outputs, ends of branches, and
outcomes, no expression meets a missing value or one of a kind that it does not take.

The walk below is written from the format's document and shares no code with the validator.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given
from hypothesis import strategies as st

from governance.conditions import ConditionTypeError, EvaluationScope, MissingPathError, compile_expression
from governance.conditions.errors import ConditionError
from tests.properties import examples
from tests.workflows.definitions.typed import KINDS, assign, block, call, document, findings
from workflows.kinds.base import Json
from workflows.kinds.shapes import closed
from workflows.kinds.template import fill_template

pytestmark = pytest.mark.unit

SCOPE = EvaluationScope(now=datetime(2026, 5, 4, 12, tzinfo=UTC), case_id="case-1", definition_id="def-1")
FIELDS: list[Json] = [
    {"type": "integer", "minimum": -5, "maximum": 5},
    {"type": "number", "minimum": 0, "maximum": 1},
    {"type": "string", "maxLength": 5},
    {"type": ["string", "null"], "maxLength": 5},
    {"type": "boolean"},
    {"enum": ["red", "green"]},
    {"enum": ["red", 1]},
    {"type": "string", "format": "date-time"},
    {"type": "array", "maxItems": 3, "items": {"type": "integer"}},
    {
        "type": "array",
        "maxItems": 3,
        "items": closed({"n": {"type": "integer"}, "s": {"type": "string", "maxLength": 5}}),
    },
    closed({"n": {"type": "integer"}, "m": {"type": "boolean"}}, optional=("m",)),
]


# --- documents ---

LATER = "@@"


class Maker:
    """A document with a few blocks; some of its expressions are wrong."""

    def __init__(self, random: Random, *, sampling: bool = True) -> None:
        self.random, self.sampling = random, sampling
        self.steps: Json = {}
        self.paths = ["input.a", "input.b", "input.c", "input.d", "case_id", "input.gone"]
        self.fields = [random.choice(FIELDS) for _ in range(4)]

    def make(self) -> Json:
        first = self.body("TERMINAL", depth=0)
        names = dict(zip("abcd", self.fields, strict=True))
        given = closed(names, optional=tuple(name for name in names if self.random.random() < 0.3))
        output = {f"o{number}": self.expression() for number in range(8)}
        return self.filled(document(self.steps, start=first, input=given, output=output))

    def filled(self, part: Any) -> Any:
        """With expressions, once all steps that they may read are known."""
        if isinstance(part, dict):
            return {name: self.filled(one) for name, one in part.items()}
        return part.replace(LATER, self.expression_text()) if isinstance(part, str) else part

    def body(self, end: str, *, depth: int) -> str:
        """Steps one after the other, some with a step aside. Returns the first."""
        then = end
        for _ in range(self.random.randint(1, 3)):
            then = self.step(then, end, depth=depth)
        return then

    def name(self) -> str:
        name = f"s{len(self.steps)}"
        self.steps[name] = {}
        return name

    def step(self, then: str, end: str, *, depth: int) -> str:
        name = self.name()
        shapes = [
            "call",
            "assign",
            "assign",
            "hook",
            "condition",
            *(["parallel", "for_each", "loop"] if depth < 2 else []),
        ]
        made = getattr(self, self.random.choice(shapes))(name, then, end, depth)
        self.steps[name] = made
        return name

    def call(self, name: str, then: str, end: str, depth: int) -> Json:
        fields = {field: self.random.choice(FIELDS) for field in "pq"}
        self.paths += [f"{name}.p", f"{name}.q", f"{name}.p.n", f"{name}.q.n", f"{name}.q.m"]
        return call(then, fails=end if self.random.random() < 0.3 else then, **fields)

    def assign(self, name: str, then: str, end: str, depth: int) -> Json:
        made = assign(then, **{field: self.expression() for field in "vwxyz"})
        self.paths += [f"{name}.v", f"{name}.w", f"{name}.v.n"]
        return made

    def hook(self, name: str, then: str, end: str, depth: int) -> Json:
        template = {"a": f"{{{{{self.expression()}}}}}", "b": f"x {{{{{self.expression()}}}}}"}
        params = {"event_name": "a.b", "payload_template": template if self.random.random() < 0.8 else {}}
        return {"kind": "emit_webhook", "params": params, "transitions": {"on_complete": then}}

    def condition(self, name: str, then: str, end: str, depth: int) -> Json:
        way = {"on_true": then, "on_false": end if self.random.random() < 0.4 else then}
        return {"kind": "condition", "expr": self.condition_text(), "transitions": way}

    def parallel(self, name: str, then: str, end: str, depth: int) -> Json:
        self.paths += [f"{name}.left.ended"]
        branches = {one: self.body("JOIN", depth=depth + 1) for one in ("left", "right")}
        join = self.random.choice(["all", "all", "any", {"at_least": 2}, {"at_least": 1}])
        return block("parallel", then, otherwise=self.otherwise(then, end), branches=branches, join=join)

    def for_each(self, name: str, then: str, end: str, depth: int) -> Json:
        self.paths += [f"{name}.count", f"{name}.ends"]
        over = self.random.choice([*self.paths, "[1, 2]", "['a', 'b']", "input.a"])
        self.paths += ["item", "item.n", "item.s"]
        return block(
            "for_each", then, otherwise=self.otherwise(then, end), over=over, body=self.body("JOIN", depth=depth + 1)
        )

    def loop(self, name: str, then: str, end: str, depth: int) -> Json:
        self.paths += ["round"]
        body = self.body("JOIN", depth=depth + 1)
        self.paths += [f"{name}.rounds"]
        asked = self.random.choice(["round < 2", self.condition_text()])
        return block("loop", then, otherwise=self.otherwise(then, end), body=body, **{"while": asked, "max_rounds": 2})

    def otherwise(self, then: str, end: str) -> str:
        return end if self.random.random() < 0.4 else then

    def expression(self) -> str:
        return LATER

    def expression_text(self, depth: int = 0) -> str:
        one, two = self.operand(depth), self.operand(depth)
        shapes = ["{one}"] * 4 + ["1", "'red'", "true", "now()", "coalesce({one}, {two})", "coalesce({one}, 1)"]
        shapes += [
            "{one} + 1",
            "-{one}",
            "len({one})",
            "[{one}, {two}]",
            "{one} == {two}",
            "{one} == 'red'",
            "now() < {one}",
        ]
        shapes += [
            "{one} in {two}",
            "{one} > 0 && {two} < 5",
            "!{one}",
            "coalesce({one}, 'red') == 'red'",
        ]
        shapes += ["sample({one})"] if self.sampling else []
        return self.random.choice(shapes).format(one=one, two=two)

    def operand(self, depth: int) -> str:
        if depth < 2 and self.random.random() < 0.2:
            return f"({self.expression_text(depth + 1)})"
        return self.random.choice(self.paths)

    def condition_text(self) -> str:
        return self.random.choice(["true", "sample(0.5)", f"coalesce({self.operand(1)}, 0) == 1", LATER])


def repaired(given: Json) -> Json:
    """Without the expressions that were found, so that most documents are accepted in the end."""
    for _ in range(6):
        places = [one.pointer.split("/")[1:] for one in findings(given)]
        if not places:
            break
        for place in places:
            _repair(given, place)
    return given


def _repair(given: Json, place: list[str]) -> None:
    part: Any = given
    for name in place[:-1]:
        part = part[name]
    if isinstance(part, dict) and isinstance(part.get(place[-1]), str):
        part[place[-1]] = {"while": "false", "over": "[1]", "expr": "true"}.get(
            place[-1], "{{1}}" if "{{" in part[place[-1]] else "1"
        )


# --- runs ---


class Stopped(Exception):
    """The step failed: a number too large, or a share that is none. This is not about them."""


@contextmanager
def only_missing_and_kinds() -> Iterator[None]:
    try:
        yield
    except (MissingPathError, ConditionTypeError):
        raise
    except ConditionError as error:
        raise Stopped from error


class Walk:
    """One way through a document. `seen` are the contexts of scopes, the outermost first."""

    def __init__(self, given: Json, random: Random) -> None:
        self.steps, self.given, self.random = given["steps"], given, random
        self.evaluated = 0

    def run(self) -> None:
        root = {"case_id": "c", "org_id": "o", "product_id": "p", "input": self.value(self.given["input"])}
        if self.body(self.given["start_step"], root):
            for source in self.given["output"].values():
                self.evaluate(source, root)

    def body(self, step: str, seen: Json) -> bool:
        """Whether it came to its end; the outputs are in `seen`."""
        while step not in {"TERMINAL", "JOIN"}:
            if self.random.random() < 0.03:
                return False  # it failed, and nothing follows
            outcome = self.step(step, seen)
            step = self.steps[step]["transitions"][outcome]
        return True

    def step(self, name: str, seen: Json) -> str:
        step = self.steps[name]
        params = step.get("params", {}) | ({"expr": step["expr"]} if "expr" in step else {})
        outcome: str = getattr(self, step["kind"])(name, params, seen)
        return outcome

    def call_service(self, name: str, params: Json, seen: Json) -> str:
        if self.random.random() < 0.3:
            return "on_failure"
        seen[name] = self.value(params["returns"])
        return "on_complete"

    def assign(self, name: str, params: Json, seen: Json) -> str:
        seen[name] = {field: self.evaluate(source, seen) for field, source in params["values"].items()}
        return "on_complete"

    def emit_webhook(self, name: str, params: Json, seen: Json) -> str:
        self.evaluated += 1
        with only_missing_and_kinds():
            fill_template(params["payload_template"], seen, SCOPE)
        return "on_complete"

    def condition(self, name: str, params: Json, seen: Json) -> str:
        result = self.evaluate(params["expr"], seen)
        assert isinstance(result, bool)
        return "on_true" if result else "on_false"

    def parallel(self, name: str, params: Json, seen: Json) -> str:
        ends, given = {}, {}
        for branch, first in params["branches"].items():
            own = dict(seen)
            ends[branch] = {"ended": "completed" if self.body(first, own) else "failed"}
            if ends[branch]["ended"] == "completed":
                given |= {key: value for key, value in own.items() if key not in seen}
        seen |= given | {name: ends}
        join = params["join"]
        needed = join["at_least"] if isinstance(join, dict) else {"all": 2, "any": 1}[join]
        return "on_complete" if sum(end["ended"] == "completed" for end in ends.values()) >= needed else "on_failure"

    def for_each(self, name: str, params: Json, seen: Json) -> str:
        items = self.evaluate(params["over"], seen)
        assert isinstance(items, list)
        ends = [self.body(params["body"], seen | {"item": item}) for item in items]
        seen[name] = {"count": len(items), "ends": ["completed" if end else "failed" for end in ends]}
        return "on_complete" if all(ends) else "on_failure"

    def loop(self, name: str, params: Json, seen: Json) -> str:
        for number in range(1, params["max_rounds"] + 1):
            own = seen | {"round": number}
            while not self.body(params["body"], own):
                own = seen | {"round": number}  # a person let it go on
            again = self.evaluate(params["while"], own)
            assert isinstance(again, bool)
            if not again or number == params["max_rounds"]:
                break
        own.pop("round")
        seen |= {key: value for key, value in own.items() if key not in seen} | {name: {"rounds": number}}
        return "on_exhausted" if again else "on_complete"

    def evaluate(self, source: str, seen: Json) -> Any:
        self.evaluated += 1
        with only_missing_and_kinds():
            return compile_expression(source).value(seen, scope=SCOPE)

    def value(self, schema: Json) -> Any:
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        kind = self.random.choice(kinds)
        if kind == "object":
            wanted = [name for name in schema["properties"] if name in schema["required"] or self.random.random() < 0.5]
            return {name: self.value(schema["properties"][name]) for name in wanted}
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(self.random.randint(0, schema["maxItems"]))]
        if kind == "string":
            return (
                "2026-05-04T11:00:00Z" if schema.get("format") == "date-time" else self.random.choice(["", "red", "ab"])
            )
        plain = {"integer": self.random.randint(-5, 5), "number": self.random.choice([0, 0.5, 1]), "null": None}
        return plain.get(kind, self.random.random() < 0.5)


def walked(seed: int) -> Iterator[int]:
    random = Random(seed)
    given = repaired(Maker(random).make())
    if findings(given):
        return
    for _ in range(5):
        walk = Walk(given, random)
        with suppress(Stopped):
            walk.run()
        yield walk.evaluated


@examples(120, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_what_is_accepted_can_be_evaluated_on_every_way(seed: int) -> None:
    event("accepted" if list(walked(seed)) else "refused")


def test_most_of_the_documents_are_accepted_and_evaluate_something() -> None:
    counts = [list(walked(seed)) for seed in range(30)]
    assert sum(bool(one) for one in counts) > 20
    assert sum(sum(one) for one in counts) > 1_000
    assert set(KINDS) >= {"parallel", "for_each", "loop", "assign"}
