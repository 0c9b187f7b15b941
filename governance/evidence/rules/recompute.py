"""Computes the decisions in a bundle again, from the request, environment and snapshots inside it, with this program's
evaluators."""

from collections.abc import Mapping
from typing import Any

from governance.enforcement.rules import Environment, decision_document, evaluate
from sdk import holdpoint_verify as verifier

COMPARED = ("verdict", "reason_code", "rule_id", "results", "approval")


def recompute(files: Mapping[str, bytes]) -> list[str]:
    """A sentence for each decision that comes out differently; empty if all agree."""
    return [f"decision {id_} comes out differently: {', '.join(names)}" for id_, names in recomputed(files)]


def recomputed(files: Mapping[str, bytes]) -> list[tuple[str, list[str]]]:
    """The decisions that come out differently, and in which fields."""
    snapshots = {row["sha256"]: row["document"] for row in verifier.read_canonical_json(files["snapshots.json"])}
    differing = []
    for row in verifier.read_canonical_json(files["decisions.json"]):
        if row["request"] is None:  # erased by order
            continue
        facts = row["environment"]
        named = {part: snapshots.get(facts.get(f"{part}_sha256")) for part in ("contract", "policy", "region")}
        again: dict[str, Any] = decision_document(evaluate(row["request"], Environment(facts=facts, **named)))
        stored = row | {"reason_code": row["reason_code"] or None, "rule_id": row["rule_id"] or None}
        names = [name for name in COMPARED if again[name] != stored[name]]
        if names:
            differing.append((str(row["id"]), names))
    return differing
