"""Signing in and one's own sessions. Doors only: what a person may do is decided elsewhere."""
