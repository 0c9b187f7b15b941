"""Settings for every way of running Holdpoint. Only wiring: no rule of the domain is here."""

from typing import Any

from kombu import Queue

from config.env import (
    BASE_DIR,
    broker_options,
    broker_url,
    database_settings,
    env,
    evidence_storage,
    exports_storage,
    secret_key,
    server_url,
)
from config.lanes import DISPATCH, LANES, queue_of
from config.logs import logging_settings
from config.settings import sign_in
from config.settings.sign_in import *  # noqa: F403

DEBUG = False
PRODUCTION = False
SECRET_KEY = secret_key()
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "guardian",
    "django_celery_beat",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    *sign_in.APPS,
    "config.apps.ConfigConfig",
    "reasoncodes",
    "governance",
    "attempts",
    "workflows",
]

# The order matters. No-store is outermost, because every answer needs it. The request context is next, so that every
# answer has its ids and its log line. DoorMiddleware follows, so that intake skips all others. The database check runs
# before sessions read the database, the tenant scope after the person is known and proven, and problems innermost, so
# that a view's refusal becomes an answer inside them.
MIDDLEWARE = [
    "config.middleware.caching.NoStoreMiddleware",
    "config.middleware.request_context.RequestContextMiddleware",
    "config.middleware.door.DoorMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.middleware.database.DatabaseAvailabilityMiddleware",
    "csp.middleware.CSPMiddleware",
    "config.middleware.admin_csp.AdminCspMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "config.middleware.people.PeopleMiddleware",
    "governance.people.web.second_factor.SecondFactorMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "governance.tenancy.web.TenantScopeMiddleware",
    "config.middleware.problems.ProblemMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {"default": database_settings(server_url(variable="DATABASE_URL", key="database_url"))}
# Seconds after which PostgreSQL ends a statement of a web process (config.startup). 0: no limit.
WEB_STATEMENT_SECONDS = env.float("HOLDPOINT_WEB_STATEMENT_SECONDS", default=15.0)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = server_url(variable="REDIS_URL", key="redis_url")
# Per process, on purpose: nothing that must be shared or must survive is in it.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

AUTH_USER_MODEL = "governance.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
# guardian would create a user row for anonymous requests.
ANONYMOUS_USER_NAME = None
GUARDIAN_MONKEY_PATCH_USER = False
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = env.str("HOLDPOINT_STATIC_ROOT", default=str(BASE_DIR / "staticfiles"))

STORAGES: dict[str, Any] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "evidence": evidence_storage(),
    "exports": exports_storage(),
}

DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024  # for admin forms; the API has its own limit

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "governance.people.api.ApiKeyAuthentication",
        "governance.people.api.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["governance.people.api.ScopeRequired"],
    "DEFAULT_PARSER_CLASSES": ["config.api.parsers.LimitedJsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PAGINATION_CLASS": "config.api.pagination.CursorPages",
    "DEFAULT_SCHEMA_CLASS": "config.api.schema.HoldpointAutoSchema",
    "DEFAULT_VERSIONING_CLASS": None,
    "EXCEPTION_HANDLER": "config.api.problems.problem_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "URL_FORMAT_OVERRIDE": None,
    "NON_FIELD_ERRORS_KEY": "",
    "PAGE_SIZE": 50,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Holdpoint API",
    "DESCRIPTION": "Services ask before they act; rules and people decide; the record cannot be quietly changed.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "/static/holdpoint/favicon.svg",
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "APPEND_COMPONENTS": {
        "securitySchemes": {
            "apiKey": {"type": "http", "scheme": "bearer", "description": "A Holdpoint API key (`hp_…`)."},
            "session": {"type": "apiKey", "in": "cookie", "name": "sessionid"},
        }
    },
    "SECURITY": [{"apiKey": []}, {"session": []}],
    "POSTPROCESSING_HOOKS": [
        "config.api.intake_schema.document_intake",
        "config.api.schema.document_problem_responses",
    ],
}

# The queue may be on another server than streams, throttles and heartbeat: RabbitMQ, or a second Valkey.
BROKER_URL = env.str("BROKER_URL", default="") or REDIS_URL
CELERY_BROKER_URL = broker_url(BROKER_URL)
# Results are rows in the database; nobody reads a task's return value.
CELERY_TASK_IGNORE_RESULT = True
# Acknowledged after the work: a worker that is killed leaves its message to another one. Tasks are safe to run twice.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
# A worker that reserves several messages would let them wait behind a slow one while others are idle.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Threads: nearly all of a task's time is waiting, for the database or a receiver, and a process for each would cost
# twenty times the memory. A lane is a process of its own.
CELERY_WORKER_POOL = "threads"
CELERY_TASK_ROUTES = ("config.lanes.route",)
# A worker that names no queue works for all lanes.
CELERY_TASK_QUEUES = tuple(Queue(queue_of(lane), routing_key=queue_of(lane)) for lane in LANES)
CELERY_TASK_DEFAULT_QUEUE = queue_of(DISPATCH)
# How many tasks of each lane a worker runs at once. Each thread keeps one database connection.
LANE_PLACES = {
    "clock": env.int("HOLDPOINT_LANE_CLOCK", default=4),
    "dispatch": env.int("HOLDPOINT_LANE_DISPATCH", default=3),
    "adapters": env.int("HOLDPOINT_LANE_ADAPTERS", default=16),
    "webhooks": env.int("HOLDPOINT_LANE_WEBHOOKS", default=3),
    "notifications": env.int("HOLDPOINT_LANE_NOTIFICATIONS", default=4),
    "evidence": env.int("HOLDPOINT_LANE_EVIDENCE", default=2),
}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A request that sends a wake-up must not wait long for a broker that is away.
CELERY_BROKER_CONNECTION_TIMEOUT = 3
CELERY_BROKER_TRANSPORT_OPTIONS = broker_options(BROKER_URL)
# Celery would close a task's connection after each task, and PostgreSQL fork a process for each. `config.connections`
# closes those that are broken or old.
CELERY_DB_REUSE_MAX = 10**9
# Beat notices a changed schedule after so many seconds at the latest.
CELERY_BEAT_MAX_LOOP_INTERVAL = 5

LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
# config.apps configures logging itself. Django's set-up would add its default handlers first.
LOGGING_CONFIG = None
LOGGING = logging_settings(level=LOG_LEVEL)

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
CSRF_COOKIE_SAMESITE = "Lax"

CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "font-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# Days after which archives of exports are removed.
# How many different people the approvals of a contract's ten areas must come from.
READINESS_PEOPLE = env.int("HOLDPOINT_READINESS_PEOPLE", default=2)
EXPORT_DAYS = env.int("HOLDPOINT_EXPORT_DAYS", default=14)

# The key that seals the ledger: 32 random bytes in base64, from the environment or a file. Never in the database: who
# can change the record there could then also sign it.
LEDGER_NAME = env.str("HOLDPOINT_LEDGER_NAME", default="holdpoint.local/ledger")
LEDGER_KEY = env.str("HOLDPOINT_LEDGER_KEY", default="")
LEDGER_KEY_FILE = env.str("HOLDPOINT_LEDGER_KEY_FILE", default="")
LEDGER_KEY_CREATE = False
LEDGER_SIGNER = env.str("HOLDPOINT_LEDGER_SIGNER", default="")
SEALER_LAG_LIMIT_SECONDS = env.int("HOLDPOINT_SEALER_LIMIT", default=60)
# Where witnesses keep the signed heads; see governance/sealing/configured.py.
LEDGER_WITNESSES = env.str("HOLDPOINT_WITNESSES", default="")
# Seconds of work per tick of 20 s: 2 % of a core.
RECORD_WATCH_SECONDS = env.float("HOLDPOINT_RECORD_WATCH_SECONDS", default=0.4)
RECORD_WATCH_LIMIT_SECONDS = env.int("HOLDPOINT_RECORD_WATCH_LIMIT", default=120)
WITNESS_LIMIT_HEADS = env.int("HOLDPOINT_WITNESS_LIMIT_HEADS", default=1000)
WITNESS_LIMIT_SECONDS = env.int("HOLDPOINT_WITNESS_LIMIT", default=300)
# Of the witnesses that cosign: how many must have cosigned a head.
WITNESS_QUORUM = env.int("HOLDPOINT_WITNESS_QUORUM", default=1)

# Days that messages stay on the streams, read or not. /health/ready shows a note if consumers are so many messages
# behind, or if nobody has read for so many seconds.
STREAM_DAYS = env.int("HOLDPOINT_STREAM_DAYS", default=7)
CONSUMER_LIMIT_MESSAGES = env.int("HOLDPOINT_CONSUMER_LIMIT_MESSAGES", default=1000)
CONSUMER_LIMIT_SECONDS = env.int("HOLDPOINT_CONSUMER_LIMIT", default=60)

METRICS_TOKEN = env.str("HOLDPOINT_METRICS_TOKEN", default="")
BEAT_HEARTBEAT_LIMIT_SECONDS = env.int("HOLDPOINT_BEAT_LIMIT", default=60)
DEPLOYMENT_REGION = env.str("HOLDPOINT_REGION", default="")
STANDBY_REGIONS = env.list("HOLDPOINT_STANDBY_REGIONS", default=[])

# Where adapters send: `<organization slug>/<contract slug>` to an address. Private networks only if listed, so that a
# target cannot be pointed at services inside the network.
HOLDPOINT_HTTP_TARGETS = env.dict("HOLDPOINT_HTTP_TARGETS", default={})
HOLDPOINT_HTTP_ALLOW_PRIVATE = env.list("HOLDPOINT_HTTP_ALLOW_PRIVATE", default=[])
# Webhooks have their own list, because an organization's operator chooses where they go.
HOLDPOINT_WEBHOOK_ALLOW_PRIVATE = env.list("HOLDPOINT_WEBHOOK_ALLOW_PRIVATE", default=[])
# Whether a key must be bound to a registered module to answer steps. Off: a key that is bound to none may answer all.
HOLDPOINT_BOUND_KEYS_ONLY = env.bool("HOLDPOINT_BOUND_KEYS_ONLY", default=False)
HOLDPOINT_WEBHOOK_SENDERS = env.int("HOLDPOINT_WEBHOOK_SENDERS", default=1)
HOLDPOINT_WEBHOOK_KEEP_DAYS = env.int("HOLDPOINT_WEBHOOK_KEEP_DAYS", default=30)
HOLDPOINT_EMAIL_TARGETS = env.dict("HOLDPOINT_EMAIL_TARGETS", default={})
HOLDPOINT_SLACK_TOKEN = env.str("HOLDPOINT_SLACK_TOKEN", default="")
HOLDPOINT_SLACK_CHANNELS = env.dict("HOLDPOINT_SLACK_CHANNELS", default={})
HOLDPOINT_SLACK_BASE_URL = env.str("HOLDPOINT_SLACK_BASE_URL", default="")
EMAIL_BACKEND = "governance.outside.mail.TimedEmailBackend"
EMAIL_TIMEOUT = 20  # for each whole step: connect, one mail, goodbye
EMAIL_HOST = env.str("EMAIL_HOST", default="localhost")
# Whether one-time links can be mailed. Without it they are shown once to whoever confirms, and the record says to whom.
MAIL_REACHES_PEOPLE = bool(env.str("EMAIL_HOST", default=""))
EMAIL_PORT = env.int("EMAIL_PORT", default=25)
EMAIL_HOST_USER = env.str("EMAIL_HOST_USER", default="")
EMAIL_HOST_PASSWORD = env.str("EMAIL_HOST_PASSWORD", default="")
EMAIL_USE_TLS = env.bool("EMAIL_USE_TLS", default=False)
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="holdpoint@localhost")
# The address of this installation for people; links in messages use it.
PUBLIC_URL = env.str("HOLDPOINT_PUBLIC_URL", default="")

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Holdpoint",
    "SITE_HEADER": "Holdpoint",
    "SITE_SUBHEADER": "Operator console",
    "SITE_SYMBOL": "front_hand",
    "SITE_URL": "/",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "/static/holdpoint/favicon.svg"}],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "COLORS": {
        "primary": {
            "50": "oklch(97.5% .014 195)",
            "100": "oklch(94.5% .032 195)",
            "200": "oklch(89.5% .058 195)",
            "300": "oklch(82% .085 195)",
            "400": "oklch(72% .105 195)",
            "500": "oklch(61% .108 195)",
            "600": "oklch(52% .095 195)",
            "700": "oklch(44.5% .08 195)",
            "800": "oklch(38% .066 195)",
            "900": "oklch(33% .055 195)",
            "950": "oklch(23% .04 195)",
        }
    },
    "SIDEBAR": {"show_search": False, "navigation": "config.admin_menu.navigation"},
    "DASHBOARD_CALLBACK": "config.console.overview.dashboard",
}
