"""Run as the tables' owner: migrate, then hand the application's role its rights. One process for both."""

import os
import sys

import django
from django.core.management import call_command


def main() -> None:
    """`python -m config.supervisor.prepare`, with the owner's DATABASE_URL."""
    django.setup()
    call_command("migrate", interactive=False, verbosity=1, stdout=sys.stderr)
    if os.environ.get("HOLDPOINT_APP_ROLE"):
        call_command("grant_application_role", stdout=sys.stderr)


if __name__ == "__main__":
    main()
