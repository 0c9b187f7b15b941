"""Conventions of the HTTP API, wired in by settings: problems, limits, pages, schema."""
