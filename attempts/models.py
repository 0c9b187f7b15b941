"""Django looks for the models of an app here. Import each one from the folder of its capability."""

from attempts.execution import models as execution
from attempts.intake import models as intake
from attempts.lifecycle import models as lifecycle
from attempts.notify import models as notify
from attempts.proposals import models as proposals
from attempts.quarantine import models as quarantine
from attempts.receivers import models as receivers
from attempts.reviews import models as reviews

__all__ = ["execution", "intake", "lifecycle", "notify", "proposals", "quarantine", "receivers", "reviews"]
