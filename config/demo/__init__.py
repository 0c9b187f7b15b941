"""The demo organization: people, keys, contracts, workflows. Idempotent, and refused under production settings."""
