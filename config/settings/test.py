"""Tests: the throw-away servers of `make test`, cheap password hashing, everything else as in production."""

import os
from base64 import b64encode

os.environ.setdefault("SECRET_KEY", "tests-only-not-a-secret-0123456789abcdefghijklmnop")
os.environ.setdefault("DATABASE_URL", "postgresql:///unit-tests-have-no-database")
os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:1/0")

from config.settings.base import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.workflows.tenth"]  # noqa: F405
DEMO_ALLOWED = True
DEMO_BASE_URL = "http://testserver"
DEPLOYMENT_REGION = "US"
LEDGER_KEY = b64encode(b"a key of thirty-two bytes, tests").decode()
LEDGER_WITNESSES = ""
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
CELERY_TASK_ALWAYS_EAGER = False
