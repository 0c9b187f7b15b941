"""Production: nothing has a default that would be unsafe; what is missing stops the start."""

from django.core.exceptions import ImproperlyConfigured

from config.env import env
from config.settings.base import *  # noqa: F403

DEMO_ALLOWED = False
DEMO_BASE_URL = ""
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS")
DEPLOYMENT_REGION = env.str("HOLDPOINT_REGION")
METRICS_TOKEN = env.str("HOLDPOINT_METRICS_TOKEN")
if not (LEDGER_KEY or LEDGER_KEY_FILE):  # noqa: F405
    raise ImproperlyConfigured("Neither HOLDPOINT_LEDGER_KEY nor HOLDPOINT_LEDGER_KEY_FILE: nothing could be sealed.")
if not METRICS_TOKEN:
    raise ImproperlyConfigured("HOLDPOINT_METRICS_TOKEN is empty: /metrics would be open.")

SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=True)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REDIRECT_EXEMPT = [r"^health", r"^metrics$"]
SECURE_HSTS_SECONDS = 365 * 24 * 3600
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
STORAGES = STORAGES | {  # noqa: F405
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
