"""The local settings plus one bare DRF view that inserts one row: the reference for intake."""

from config.settings.local import *  # noqa: F403

ROOT_URLCONF = "bench.urls"
WHITENOISE_AUTOREFRESH = False  # as in production: looking for files anew would slow the reference down
LEDGER_WITNESSES = ""  # the folder outlives the databases
