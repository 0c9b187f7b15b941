"""What every app uses: errors, actors, ids, tenant scope, traces, JSON limits, API conventions. Imports no other
app."""
