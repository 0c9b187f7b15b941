"""Run as the tables' owner: migrate, then hand the application's role its rights. One process for both."""

import os
import sys

from django.core.management import call_command
from django.db import connections

from config.env import database_settings


def prepare() -> None:
    """With the owner's DATABASE_URL. Prints a line when all is done: one that failed has printed nothing."""
    # The settings were loaded with the application's address.
    connections.settings["default"].update(database_settings(os.environ["DATABASE_URL"]))
    call_command("migrate", interactive=False, verbosity=1, stdout=sys.stderr, skip_checks=False)
    if os.environ.get("HOLDPOINT_APP_ROLE"):
        call_command("grant_application_role", stdout=sys.stderr)
    print("The database is prepared.")
