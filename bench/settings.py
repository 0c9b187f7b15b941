"""The local settings, with the routes of bench.urls, which add the reference view for intake."""

from config.settings.local import *  # noqa: F403

ROOT_URLCONF = "bench.urls"
WHITENOISE_AUTOREFRESH = False  # as in production: searching for files at each request would slow the reference down
LEDGER_WITNESSES = ""  # the folder stays when the database is replaced, and its heads would cause deny mode
