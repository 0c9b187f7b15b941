"""The vocabulary: reason codes. `base` has what every app uses (errors, actors, tenant scope, ids)."""
