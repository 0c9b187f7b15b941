"""Celery looks for the tasks of an app here. Each is defined in its room, under a name that never changes."""

from governance.authority import tasks as authority
from governance.console import tasks as console
from governance.evidence import tasks as evidence
from governance.integrity import tasks as integrity
from governance.people import tasks as people
from governance.retention import tasks as retention
from governance.sealing import tasks as sealing

__all__ = ["authority", "console", "evidence", "integrity", "people", "retention", "sealing"]
