"""`make run` and `manage.py` on a developer's machine: embedded servers, loopback only, demo allowed."""

from config.env import database_mark, env, home, local_witnesses
from config.settings.base import *  # noqa: F403

DEMO_ALLOWED = True
DEMO_BASE_URL = f"http://127.0.0.1:{env.int('PORT', default=8000)}"
PUBLIC_URL = env.str("HOLDPOINT_PUBLIC_URL", default=DEMO_BASE_URL)
LEDGER_KEY_FILE = env.str("HOLDPOINT_LEDGER_KEY_FILE", default=str(home() / "ledger.key"))
# Only here: in production a key that is created because one was lost would start a second history.
LEDGER_KEY_CREATE = True
# One file per database: heads of another database in the same folder would look like entries that were lost here. And
# the witness that `make run` starts, if it did.
LEDGER_WITNESSES = env.str(
    "HOLDPOINT_WITNESSES",
    default=local_witnesses(home() / "witness", database_mark(DATABASES["default"])),  # noqa: F405
)
DEPLOYMENT_REGION = env.str("HOLDPOINT_REGION", default="US")
HOLDPOINT_DEMO_TARGET = env.str("HOLDPOINT_DEMO_TARGET", default="")
HOLDPOINT_DEMO_WEBHOOK = env.str("HOLDPOINT_DEMO_WEBHOOK", default="")
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
# Mails are printed, so they reach nobody; or they are files in a folder, for whoever wants to try them.
MAIL_FOLDER = env.str("HOLDPOINT_MAIL_FOLDER", default="")
EMAIL_BACKEND = f"django.core.mail.backends.{'filebased' if MAIL_FOLDER else 'console'}.EmailBackend"
EMAIL_FILE_PATH = MAIL_FOLDER or None
MAIL_REACHES_PEOPLE = bool(MAIL_FOLDER)
