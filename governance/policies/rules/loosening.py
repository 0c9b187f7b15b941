"""Whether new rules let something pass that the old ones stopped or held. In doubt they do: a proposal that is marked
without need costs a look, one that is not marked costs the control. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from governance.conditions import ConditionError, compile_condition
from governance.policies.rules.demand import covers, demand_in

_RANK: Final = {"allow": 0, "needs_approval": 1, "deny": 2}
NOTHING_BEFORE: Final = "no earlier rule decided this, so it was denied"
STRICTER_BEFORE: Final = "the earlier rules were stricter here"
NOT_COMPARABLE: Final = "it cannot be compared with the earlier rules, which may have been stricter"


def weaker(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the second outcome lets something pass sooner than the first. Each is a rule, or a verdict with the
    fields of its approval."""
    if before["verdict"] != after["verdict"]:
        return _RANK[after["verdict"]] < _RANK[before["verdict"]]
    if after["verdict"] != "needs_approval":
        return False
    fewer = not covers(demand_in(after), demand_in(before))
    return fewer or after["expires_in_seconds"] > before["expires_in_seconds"]


def rules_loosening(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Why each new rule may loosen, by its id; empty only if no request can come out weaker than before. Both lists
    are complete rules: defaults are filled in."""
    found: dict[str, str] = {}
    passed: set[str] = set()
    for rule in after:
        why = "" if rule["verdict"] == "deny" else _why(rule, passed, before)
        if why:
            found[str(rule["id"])] = why
        passed.add(rule["when"].strip())
    return found


def _why(rule: Mapping[str, Any], passed: set[str], before: Sequence[Mapping[str, Any]]) -> str:
    """What the earlier rules said about a request that this rule decides: every condition in `passed` was false for it,
    without an error, and the rule's own is true."""
    if not _stable(rule["when"]):
        return NOT_COMPARABLE
    # Nothing reaches it: an earlier rule has the same condition, or matches always.
    if passed & {rule["when"].strip(), "true"}:
        return ""
    for old in before:
        when = old["when"].strip()
        if when in {rule["when"].strip(), "true"}:
            return STRICTER_BEFORE if weaker(old, rule) else ""
        # A condition that may be true, or fail, could have denied the request.
        if not (when == "false" or (when in passed and _stable(when))):
            return NOT_COMPARABLE
    return NOTHING_BEFORE


def _stable(source: str) -> bool:
    """Whether a condition says the same in two versions of a policy. `sample` draws anew for each version."""
    try:
        return not compile_condition(source).uses_sample
    except ConditionError:
        return False
