"""Reading a policy's rules: pure, all findings at once."""

from governance.policies.rules import PolicyProblem, rules_problems

__all__ = ["PolicyProblem", "rules_problems"]
