"""Plays the modules that answer a workflow's requests. An outside program: it knows event schemas, HTTP and Valkey."""
