"""Evidence bundles: what goes into the zip, and its readable report. Pure: no database, no clock.

The form of the zip itself, its manifest and everything that is checked are in `sdk/holdpoint_verify.py`, the one file
that a third party runs; bundles are written with it.
"""

from governance.evidence.rules.content import Collected, CollectedEntry, content_files
from governance.evidence.rules.material import BundleSubject, Material, Person, canonical_plain
from governance.evidence.rules.recompute import recompute

__all__ = [
    "BundleSubject",
    "Collected",
    "CollectedEntry",
    "Material",
    "Person",
    "canonical_plain",
    "content_files",
    "recompute",
]
