"""One vocabulary: reason codes, and what every app stands on (errors, actors, tenant scope, ids)."""
