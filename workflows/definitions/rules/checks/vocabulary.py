"""Halt reasons and reviewer tiers exist in this organization."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from workflows.definitions.rules.findings import DefinitionFinding, did_you_mean, nearest, quoted
from workflows.definitions.rules.reading import Reading


def halt_reason_exists(reading: Reading) -> Iterator[DefinitionFinding]:
    """Also for other scopes, if a kind has a param for one; a scope nobody gave codes for is not judged."""
    for step_id, _, kind in reading.of_kind():
        for param, scope in kind.reason_codes.items():
            codes = reading.codes.get(scope)
            if codes is not None:
                what = f"an active reason code of scope {scope}"
                yield from _known(reading, step_id, param, codes, rule=f"{scope}_reason_exists", what=what)
                yield from _of_kind(reading, step_id, param, codes, kind.name)


def review_tier_exists(reading: Reading) -> Iterator[DefinitionFinding]:
    for step_id, _, kind in reading.of_kind():
        param = kind.human_tier or ("tier" if "tier" in kind.params_schema.get("properties", {}) else "")
        if param:
            what = "an active reviewer tier of this organization"
            yield from _known(reading, step_id, param, reading.tiers, rule="review_tier_exists", what=what)


def _known(
    reading: Reading, step_id: str, param: str, names: Iterable[str], *, rule: str, what: str
) -> Iterator[DefinitionFinding]:
    value = reading.params(step_id).get(param)
    if not isinstance(value, str) or value in names:
        return
    suggestion = nearest(value, names)
    few = ", ".join(sorted(names)[:12])
    advice = did_you_mean(suggestion) or (f" There are: {few}." if few else " There is none yet: add it first.")
    message = f"{quoted(value).capitalize()} is not {what}.{advice}"
    yield DefinitionFinding(rule, reading.param_pointer(step_id, param), message, suggestion)


def _of_kind(
    reading: Reading, step_id: str, param: str, codes: Collection[str], kind: str
) -> Iterator[DefinitionFinding]:
    """A code may be limited to some kinds of steps, if the caller says to which."""
    limits = codes.get(str(reading.params(step_id).get(param))) if isinstance(codes, Mapping) else None
    if limits and kind not in limits:
        message = f"This reason code is for steps of kind {', '.join(sorted(limits))} only. Choose another."
        yield DefinitionFinding("reason_code_step_kind", reading.param_pointer(step_id, param), message)
