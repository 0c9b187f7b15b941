"""The operator console's pages of this app."""

from workflows.admin import definitions

__all__ = ["definitions"]
