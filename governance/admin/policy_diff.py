"""What publishing a draft would change, rule by rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from governance.admin.json_text import Difference, differences


@dataclass(frozen=True, slots=True)
class RuleChange:
    """`kind`: added, removed, changed or moved (same content, other place relative to the rules that stay)."""

    kind: str
    rule_id: str
    rule: dict[str, Any]
    fields: tuple[Difference, ...] = ()


def rules_diff(before: Sequence[Any], after: Sequence[Any]) -> list[RuleChange]:
    """Rules are told apart by their id; order counts, because the first rule that matches decides."""
    old, new = _by_id(before), _by_id(after)
    stay_before = [rule_id for rule_id in old if rule_id in new]
    stay_after = [rule_id for rule_id in new if rule_id in old]
    found = [RuleChange("removed", rule_id, rule) for rule_id, rule in old.items() if rule_id not in new]
    for rule_id, rule in new.items():
        if rule_id not in old:
            found.append(RuleChange("added", rule_id, rule))
        elif rule != old[rule_id]:
            found.append(RuleChange("changed", rule_id, rule, tuple(differences(old[rule_id], rule))))
        elif stay_before.index(rule_id) != stay_after.index(rule_id):
            found.append(RuleChange("moved", rule_id, rule))
    return found


def _by_id(rules: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Drafts may be faulty: what is no rule is left out here and reported by the validation."""
    return {str(rule["id"]): rule for rule in rules if isinstance(rule, dict) and "id" in rule}
