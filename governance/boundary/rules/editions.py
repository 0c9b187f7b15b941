"""Editions of the detectors. A decision names the one that it was made with, so that a stored decision comes out the
same after the detectors have learned more. An edition never changes; what is learned next is another edition."""

from typing import Final

# Decisions from before editions existed name none.
FIRST: Final = 1
# 2: look-alike letters, encoded content, documents inside strings, glued labels, addresses in words, clinical phrases.
CURRENT: Final = 2
EDITIONS: Final = (FIRST, CURRENT)
