"""What every app stands on: errors, actors, ids, tenant scope, traces, JSON limits, API conventions."""
