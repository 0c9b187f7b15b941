"""Migrates and then grants the application's role its rights, in one process, as the owner of the tables."""

import os
import sys

from django.core.management import call_command
from django.db import connections

from config.env import database_settings


def prepare() -> None:
    """Uses the owner's DATABASE_URL. Prints a line at the end: a step that printed nothing has failed."""
    # The fork server loaded the settings with the application's address, so the owner's replaces it here.
    connections.settings["default"].update(database_settings(os.environ["DATABASE_URL"]))
    call_command("migrate", interactive=False, verbosity=1, stdout=sys.stderr, skip_checks=False)
    if os.environ.get("HOLDPOINT_APP_ROLE"):
        call_command("grant_application_role", stdout=sys.stderr)
    print("The database is prepared.")
