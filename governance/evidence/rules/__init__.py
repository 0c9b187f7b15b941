"""Evidence bundles: the files in the zip, and its readable report. Pure: no database, no clock.

The zip format, the manifest and all checks are in `sdk/holdpoint_verify.py`, the file that a third party runs. Bundles
are written with the same file.
"""

from governance.evidence.rules.content import Collected, CollectedEntry, content_files
from governance.evidence.rules.material import BundleSubject, Material, Person, canonical_plain
from governance.evidence.rules.recompute import recompute, recomputed

__all__ = [
    "BundleSubject",
    "Collected",
    "CollectedEntry",
    "Material",
    "Person",
    "canonical_plain",
    "content_files",
    "recompute",
    "recomputed",
]
