"""Witnesses: places outside the database's reach that keep signed heads. What they hold, nobody can take back here."""

from governance.witnesses.base import Witness, WitnessFailed
from governance.witnesses.configured import witness_from, witnesses_configured

__all__ = ["Witness", "WitnessFailed", "witness_from", "witnesses_configured"]
