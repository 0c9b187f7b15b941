"""Django looks for the console pages of an app here. Each is defined in the folder of its capability."""

from attempts.intake import admin as intake
from attempts.lifecycle import admin as lifecycle
from attempts.notify import admin as notify
from attempts.proposals import admin as proposals
from attempts.quarantine import admin as quarantine
from attempts.receivers import admin as receivers
from attempts.reviews import admin as reviews

__all__ = ["intake", "lifecycle", "notify", "proposals", "quarantine", "receivers", "reviews"]
