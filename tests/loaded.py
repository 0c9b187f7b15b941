"""Loaded once by the process from which tests.processes forks: everything that takes long, and nothing that
connects."""

from importlib import import_module

import django

django.setup()
for name in ("attempts.tasks.execution", "config.urls", "workflows.tasks"):
    import_module(name)
