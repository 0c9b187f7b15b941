"""Tests: the throw-away servers of `make test`, cheap password hashing, everything else as in production."""

import os
import re
from base64 import b64encode

os.environ.setdefault("SECRET_KEY", "tests-only-not-a-secret-0123456789abcdefghijklmnop")
os.environ.setdefault("DATABASE_URL", "postgresql:///unit-tests-have-no-database")
os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:1/0")
# Parallel test processes have a Valkey database each, as they have a PostgreSQL database each.
if (worker := os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")).isdigit():
    os.environ["REDIS_URL"] = re.sub(r"(db=|/)\d+$", rf"\g<1>{int(worker) % 15 + 1}", os.environ["REDIS_URL"])

from config.settings.base import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.workflows.tenth"]  # noqa: F405
DEMO_ALLOWED = True
DEMO_BASE_URL = "http://testserver"
PUBLIC_URL = "https://holdpoint.example"
MAIL_REACHES_PEOPLE = True
DEPLOYMENT_REGION = "US"
LEDGER_KEY = b64encode(b"a key of thirty-two bytes, tests").decode()
STORAGES["evidence"] = {"BACKEND": "django.core.files.storage.InMemoryStorage"}  # noqa: F405
LEDGER_SIGNER = ""
LEDGER_WITNESSES = ""
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
CELERY_TASK_ALWAYS_EAGER = False
CELERY_DB_REUSE_MAX = 0  # workers in threads of the tests leave no connection open
