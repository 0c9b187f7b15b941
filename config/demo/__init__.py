"""The demo organization: people, keys, contracts. Idempotent, for local settings only."""
