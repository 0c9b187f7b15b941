"""The clinic of these tests."""

from tests.governance.retention.support import clinic

__all__ = ["clinic"]
