"""For `collectstatic` while an image is built: production's static files, and no secret or server that exists."""

import os
import secrets

os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(48))
os.environ.setdefault("DATABASE_URL", "postgresql:///a-build-has-no-database")
os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:1/0")

from config.settings.base import *  # noqa: F403

DEMO_ALLOWED = False
DEMO_BASE_URL = ""
ALLOWED_HOSTS = []
STORAGES["staticfiles"] = {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}  # noqa: F405
