"""What production refuses to start with: each rule names a fault of the settings and, in one line, what to do about it.

It reads the final settings, so that a module which imports production's settings and loosens them is refused too.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

LOOPBACK = {"127.0.0.1", "localhost", "::1", "[::1]"}
SHORTEST_SECRET, SHORTEST_TOKEN, KINDS_OF_CHARACTERS = 50, 16, 8
LEDGER_NAME_LOCALLY = "holdpoint.local/ledger"
# The key of our own test settings is public, so it protects nothing.
TESTS_KEY = b"a key of thirty-two bytes, tests"
# Placeholders from examples and manuals, and what people type "for now".
PLACEHOLDER = re.compile(
    r"change.?me|replace.?me|insecure|example|placeholder|not.a.secret|your.?secret", re.IGNORECASE
)
PASSWORDS = {"guest", "postgres", "password", "secret", "admin", "root", "holdpoint", "valkey", "redis", "123456"}
RANDOM = """python -c 'import secrets; print(secrets.token_urlsafe(48))'"""
RANDOM_KEY = """python -c 'import base64, os; print(base64.b64encode(os.urandom(32)).decode())'"""

Findings = Iterator[tuple[str, str]]


def unsafe(settings: Any) -> list[str]:
    """All faults, one line each. Never contains a secret's value."""
    return [f"{fault}: {way_out}" for rule in RULES for fault, way_out in rule(settings)]


def refuse_unsafe(settings: Any) -> None:
    """Wiring: stops every process of an unsafe production."""
    if getattr(settings, "PRODUCTION", False) and (found := unsafe(settings)):
        raise ImproperlyConfigured("\n".join(found))


def guessable(secret: str) -> bool:
    return bool(PLACEHOLDER.search(secret)) or len(set(secret)) < KINDS_OF_CHARACTERS


def secrets(settings: Any) -> Findings:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    if any(len(key) < SHORTEST_SECRET or guessable(key) for key in keys):
        yield "SECRET_KEY is short, a placeholder or guessable", f"SECRET_KEY=$({RANDOM})"
    if len(settings.METRICS_TOKEN) < SHORTEST_TOKEN or guessable(settings.METRICS_TOKEN):
        yield "HOLDPOINT_METRICS_TOKEN is missing, short or guessable", f"HOLDPOINT_METRICS_TOKEN=$({RANDOM})"


def _a_demo(settings: Any) -> Findings:
    production = "DJANGO_SETTINGS_MODULE=config.settings.production"
    if settings.DEBUG:
        yield "DEBUG is on, and error pages show values", f"remove it; {production}"
    if settings.DEMO_ALLOWED:
        yield "The demo is allowed, with passwords that are known", production
    if str(settings.LOG_LEVEL).upper() in {"DEBUG", "NOTSET"}:
        yield "LOG_LEVEL is DEBUG, at which libraries write values into their lines", "LOG_LEVEL=INFO"


def names(settings: Any) -> Findings:
    hosts = set(settings.ALLOWED_HOSTS)
    if not hosts or hosts <= LOOPBACK:
        yield "ALLOWED_HOSTS is missing or names this machine only", "ALLOWED_HOSTS=<the name in people's browsers>"
    if any(host.startswith(("*", ".")) for host in hosts):
        yield "ALLOWED_HOSTS has a wildcard, and a forged Host would be believed", "write each name out"
    if any(not origin.startswith("https://") or "*" in origin for origin in settings.CSRF_TRUSTED_ORIGINS):
        yield "CSRF_TRUSTED_ORIGINS trusts plain HTTP or a wildcard", "write https:// and each name out"
    if settings.PUBLIC_URL and not settings.PUBLIC_URL.startswith("https://"):
        yield "HOLDPOINT_PUBLIC_URL leads people to plain HTTP", "HOLDPOINT_PUBLIC_URL=https://<the same name>"
    if any(_this_machine(entry.lower()) for entry in settings.HOLDPOINT_WEBHOOK_ALLOW_PRIVATE):
        yield (
            "HOLDPOINT_WEBHOOK_ALLOW_PRIVATE lets an organization's webhooks call this machine",
            "name the receiver by a host of your network, or take it out",
        )
    if any(_this_machine(entry.lower()) for entry in settings.IDENTITY_ALLOW_PRIVATE):
        yield (
            "HOLDPOINT_IDENTITY_ALLOW_PRIVATE lets an organization's identity provider point to this machine",
            "name the provider by a host of your network, or take it out",
        )
    if not settings.DEPLOYMENT_REGION:
        yield (
            "HOLDPOINT_REGION is missing, and every attempt would be denied",
            "HOLDPOINT_REGION=US, or where this runs",
        )


def _this_machine(entry: str) -> bool:
    """An entry of an allow list: a host, with or without a port."""
    return entry in LOOPBACK or entry.rpartition(":")[0] in LOOPBACK


def transport(settings: Any) -> Findings:
    cookies = (settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE, settings.SESSION_COOKIE_HTTPONLY)
    if not all(cookies):
        yield (
            "A cookie may travel over plain HTTP or be read by scripts",
            "leave SESSION_COOKIE_SECURE, SESSION_COOKIE_HTTPONLY and CSRF_COOKIE_SECURE on",
        )
    if not (settings.SECURE_SSL_REDIRECT and settings.SECURE_HSTS_SECONDS):
        yield (
            "Plain HTTP would be answered",
            "leave SECURE_SSL_REDIRECT and SECURE_HSTS_SECONDS on, and let the proxy set X-Forwarded-Proto",
        )
    if settings.EMAIL_HOST_PASSWORD and not settings.EMAIL_USE_TLS and settings.EMAIL_HOST not in LOOPBACK:
        yield "EMAIL_HOST_PASSWORD would be sent in clear", "EMAIL_USE_TLS=true"


def people(settings: Any) -> Findings:
    known = {"administrator", "operator", "reviewer", "owner", "auditor"}
    chosen = set(settings.SECOND_FACTOR_ROLES)
    if not chosen or (chosen != {"none"} and chosen - known):
        yield (
            "HOLDPOINT_SECOND_FACTOR_ROLES is empty or names a role that does not exist",
            "leave it out, name some of " + ", ".join(sorted(known)) + ", or write none",
        )


def record(settings: Any) -> Findings:
    if settings.LEDGER_KEY_CREATE:
        yield "LEDGER_KEY_CREATE would make a new key where one is lost", "remove it from your settings"
    if settings.LEDGER_SIGNER:
        yield from _signer(settings)
    elif problem := _key_problem(str(settings.LEDGER_KEY), str(settings.LEDGER_KEY_FILE)):
        yield f"HOLDPOINT_LEDGER_KEY_FILE {problem}", f"{RANDOM_KEY} > ledger.key; chmod 600 ledger.key"
    if settings.LEDGER_NAME == LEDGER_NAME_LOCALLY:
        yield (
            "HOLDPOINT_LEDGER_NAME is what every trial's ledger is called",
            "HOLDPOINT_LEDGER_NAME=<your domain>/ledger, never changed later",
        )
    if not settings.LEDGER_WITNESSES.strip():
        yield (
            "HOLDPOINT_WITNESSES is missing, and nobody would notice a shortened record",
            "HOLDPOINT_WITNESSES=file:///<another machine's disk>/heads.jsonl (docs/ledger.md)",
        )


def _signer(settings: Any) -> Findings:
    if not settings.LEDGER_SIGNER.startswith(("unix:/", "pkcs11:")):
        yield "HOLDPOINT_LEDGER_SIGNER is neither unix:/path nor pkcs11:…", "docs/operations.md has both forms"
    if settings.LEDGER_KEY or settings.LEDGER_KEY_FILE:
        yield (
            "HOLDPOINT_LEDGER_KEY or HOLDPOINT_LEDGER_KEY_FILE is set beside HOLDPOINT_LEDGER_SIGNER",
            "take the key away from this process: the signer holds it",
        )


def _key_problem(text: str, file: str) -> str:
    if not (text or file):
        return "and HOLDPOINT_LEDGER_KEY are missing, and nothing could be sealed"
    try:
        if not text and Path(file).stat().st_mode & 0o007:
            return "can be read by every account of this machine"
        seed = b64decode(text or Path(file).read_text().strip(), validate=True)
    except OSError:
        return "cannot be read by this account"
    except ValueError:
        return "is not base64"
    if len(seed) != 32:
        return "is not 32 bytes"
    return "is a key that everybody knows" if seed == TESTS_KEY or len(set(seed)) < KINDS_OF_CHARACTERS else ""


def servers(settings: Any) -> Findings:
    database = settings.DATABASES["default"]
    if database.get("USER") in {"postgres", "root"}:
        yield (
            "DATABASE_URL signs in as PostgreSQL's administrator",
            "use the application's role: postgresql://holdpoint_app:<password>@<host>/holdpoint",
        )
    if _default_password(database.get("PASSWORD"), user=database.get("USER")):
        yield "DATABASE_URL has a default password", "ALTER ROLE holdpoint_app PASSWORD '<a random one>'"
    yield from _queue("REDIS_URL", settings.REDIS_URL)
    if settings.BROKER_URL != settings.REDIS_URL:
        yield from _queue("BROKER_URL", settings.BROKER_URL)


def _queue(variable: str, url: str) -> Findings:
    parts = urlsplit(url)
    password = unquote(parts.password or "")
    if _default_password(password, user=parts.username) or (parts.scheme.startswith("amqp") and not password):
        yield f"{variable} has a default password", "give the server a random one, and put that there"
    elif not password and parts.hostname and parts.hostname not in LOOPBACK and parts.scheme != "rediss":
        yield f"{variable} names another machine without a password", f"{parts.scheme}://:<password>@{parts.hostname}/0"


def _default_password(password: str | None, *, user: str | None) -> bool:
    if not password:
        return False
    return password == user or password.lower() in PASSWORDS or bool(PLACEHOLDER.search(password))


RULES: tuple[Callable[[Any], Findings], ...] = (secrets, _a_demo, names, transport, people, record, servers)
