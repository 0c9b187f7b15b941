"""Freezes one leaf: whatever a contract's document says, this leaf reads as in the default document."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from attempts.execution.rules import retry_plan
from governance.contracts.rules.documents.validate import validate_document, validate_documents
from governance.contracts.services.contracts import _document, _save_documents, _validate
from governance.evidence.rules.when import wanted_at_end
from governance.regions.rules.profile import tighten
from tests.leaves.walk import as_default

Change = Callable[[Any], Any]


def _readers(area: str, path: str) -> list[tuple[Callable[..., Any], Callable[..., Any]]]:
    """Each place where documents come in, and the same place with the leaf frozen: a contract is saved from these."""

    def one(document: Any) -> Any:
        return as_default(area, path, document) if isinstance(document, dict) else document

    def ten(documents: Any) -> Any:
        if not isinstance(documents, Mapping):
            return documents
        return {name: one(document) if name == area else document for name, document in documents.items()}

    return [
        (_validate, lambda documents, contract: _validate(ten(documents), contract)),
        (
            _document,
            lambda contract, name, document, author: _document(contract, name, ten({name: document})[name], author),
        ),
        (_save_documents, lambda stored, documents, author: _save_documents(stored, ten(documents), author)),
        (validate_document, lambda name, document: validate_document(name, ten({name: document})[name])),
        (validate_documents, lambda documents, *, effect: validate_documents(ten(documents), effect=effect)),
        (tighten, lambda effective, *, stance: tighten(effective, stance=ten({area: stance})[area])),
        (retry_plan, lambda *, document, **rest: retry_plan(document=one(document), **rest)),
        (wanted_at_end, lambda documents, **rest: wanted_at_end(ten(documents), **rest)),
    ]


@contextmanager
def frozen(leaf: str) -> Iterator[None]:
    area, path = leaf.split(": ")
    with ExitStack() as stack:
        for reader, replacement in _readers(area, path):
            if reader is tighten and area != "regional_compliance":
                continue
            if reader is retry_plan and area != "retry_and_replay":
                continue
            for module in list(sys.modules.values()):
                for name, value in list(vars(module).items()) if module is not None else ():
                    if value is reader and module.__name__ != __name__:
                        stack.enter_context(patch.object(module, name, replacement))
        yield
