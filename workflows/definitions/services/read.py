"""The parsed definition that a run follows."""

from functools import lru_cache

from governance.enforcement.models import snapshot_load
from workflows.definitions.rules.document import Definition, read_definition
from workflows.runs.models import WorkflowInstance


def definition_of(instance: WorkflowInstance) -> Definition:
    return _read(instance.definition_sha256, str(instance.definition_id))


# Never outdated: the copy is stored under its own hash. The limit bounds the memory of a process that serves many
# organizations.
@lru_cache(maxsize=256)
def _read(sha256: str, definition_id: str) -> Definition:
    return read_definition(snapshot_load(sha256)["definition"], definition_id=definition_id)
