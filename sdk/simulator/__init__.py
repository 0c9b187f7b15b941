"""Simulates the modules that answer a workflow's requests. It works from outside: event schemas, HTTP and Valkey, and
no tables of Holdpoint."""
