"""Whether an action can be undone, in words. Pure."""


def reversibility(*, effect: str, compensation: str, reversible: bool = False, hint: str = "") -> str:
    """`compensation`: the contract that undoes it, as slug/version. `reversible` and `hint`: what its receipt says."""
    if reversible:
        return f"The executor says that it can be undone{f': {hint}' if hint else ''}."
    if effect == "none":
        return "Nothing is changed, so there is nothing to undo."
    if compensation:
        return f"Not automatically. A person can compensate it with a new request under {compensation}."
    return "The contract names no compensation, so treat the action as final."
