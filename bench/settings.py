"""The local settings plus one bare DRF view that inserts one row: the reference for intake."""

from config.settings.local import *  # noqa: F403

ROOT_URLCONF = "bench.urls"
