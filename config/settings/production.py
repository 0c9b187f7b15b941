"""Production: no setting has an unsafe default. A missing or unsafe value stops the start (config.safety)."""

from config.env import env
from config.settings.base import *  # noqa: F403

PRODUCTION = True
DEMO_ALLOWED = False
DEMO_BASE_URL = ""
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])
DEPLOYMENT_REGION = env.str("HOLDPOINT_REGION", default="")

# Everybody who decides or operates. `none` switches it off, where people's own provider asks for the second factor.
SECOND_FACTOR_ROLES = env.list(
    "HOLDPOINT_SECOND_FACTOR_ROLES", default=["administrator", "operator", "reviewer", "owner"]
)
SIGNED_APPROVALS = env.bool("HOLDPOINT_SIGNED_APPROVALS", default=True)

SECURE_SSL_REDIRECT = True
# The proxy must set this header itself (docs/deploy.md): if it passed on a client's, a client could fake HTTPS.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# Probes and scrapers ask over plain HTTP inside the network and do not follow redirects.
SECURE_REDIRECT_EXEMPT = [r"^health", r"^metrics$"]
SECURE_HSTS_SECONDS = 365 * 24 * 3600
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
STORAGES = STORAGES | {  # noqa: F405
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
