"""Production: the documented environment is clean; each unsafe thing stops the start with one line and a way out."""

import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.env import broker_options, broker_url, database_settings, secret_key, server_url
from config.safety import refuse_unsafe, unsafe
from config.startup import forget_ended_processes, web_prepared
from tests.production import VARIABLES

pytestmark = pytest.mark.unit
ROLE = "postgresql://holdpoint_app"
KEY = b64encode(bytes(range(32))).decode()


def safe(**changes: Any) -> SimpleNamespace:
    """What production's settings come to with the smallest environment."""
    settings = {
        "PRODUCTION": True,
        "SECRET_KEY": VARIABLES["SECRET_KEY"],
        "SECRET_KEY_FALLBACKS": [],
        "METRICS_TOKEN": VARIABLES["HOLDPOINT_METRICS_TOKEN"],
        "DEBUG": False,
        "DEMO_ALLOWED": False,
        "LOG_LEVEL": "INFO",
        "ALLOWED_HOSTS": ["holdpoint.clinic.test"],
        "CSRF_TRUSTED_ORIGINS": ["https://holdpoint.clinic.test"],
        "HOLDPOINT_WEBHOOK_ALLOW_PRIVATE": ["gateway.internal:8443"],
        "IDENTITY_ALLOW_PRIVATE": ["login.internal:8443"],
        "PUBLIC_URL": "https://holdpoint.clinic.test",
        "EMAIL_HOST": "mail.internal",
        "EMAIL_HOST_PASSWORD": "",
        "EMAIL_USE_TLS": False,
        "DEPLOYMENT_REGION": "US",
        "SECOND_FACTOR_ROLES": ["administrator", "operator", "reviewer", "owner"],
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "SESSION_COOKIE_HTTPONLY": True,
        "SECURE_SSL_REDIRECT": True,
        "SECURE_HSTS_SECONDS": 3600,
        "LEDGER_KEY": KEY,
        "LEDGER_KEY_FILE": "",
        "LEDGER_KEY_CREATE": False,
        "LEDGER_SIGNER": "",
        "LEDGER_NAME": "clinic.test/ledger",
        "LEDGER_WITNESSES": "https://notary.test/heads",
        "DATABASES": {"default": database_settings(VARIABLES["DATABASE_URL"])},
        "REDIS_URL": VARIABLES["REDIS_URL"],
        "BROKER_URL": VARIABLES["REDIS_URL"],
    }
    return SimpleNamespace(**(settings | changes))


def database(url: str) -> dict[str, Any]:
    return {"DATABASES": {"default": database_settings(url)}}


UNSAFE: list[tuple[str, dict[str, Any], str]] = [
    ("a short secret", {"SECRET_KEY": "k" * 10 + "abcdefghijkl"}, "SECRET_KEY="),
    ("a secret of one letter", {"SECRET_KEY": "a" * 60}, "SECRET_KEY="),
    ("Django's own placeholder", {"SECRET_KEY": "django-insecure-" + VARIABLES["SECRET_KEY"]}, "SECRET_KEY="),
    ("the tests' secret", {"SECRET_KEY": "tests-only-not-a-secret-0123456789abcdefghijklmnop"}, "SECRET_KEY="),
    ("an old secret that is none", {"SECRET_KEY_FALLBACKS": ["change-me"]}, "SECRET_KEY="),
    ("no metrics token", {"METRICS_TOKEN": ""}, "HOLDPOINT_METRICS_TOKEN="),
    ("a metrics token from a manual", {"METRICS_TOKEN": "change-me-please-now"}, "HOLDPOINT_METRICS_TOKEN="),
    ("debug", {"DEBUG": True}, "DEBUG"),
    ("the demo", {"DEMO_ALLOWED": True}, "config.settings.production"),
    ("debug lines in logs", {"LOG_LEVEL": "debug"}, "LOG_LEVEL=INFO"),
    ("no host", {"ALLOWED_HOSTS": []}, "ALLOWED_HOSTS="),
    ("loopback only", {"ALLOWED_HOSTS": ["127.0.0.1", "localhost", "[::1]"]}, "ALLOWED_HOSTS="),
    ("any host", {"ALLOWED_HOSTS": ["*"]}, "ALLOWED_HOSTS"),
    ("a host and all below", {"ALLOWED_HOSTS": [".clinic.test"]}, "ALLOWED_HOSTS"),
    ("an origin over HTTP", {"CSRF_TRUSTED_ORIGINS": ["http://holdpoint.clinic.test"]}, "CSRF_TRUSTED_ORIGINS"),
    ("every origin", {"CSRF_TRUSTED_ORIGINS": ["https://*.clinic.test"]}, "CSRF_TRUSTED_ORIGINS"),
    ("no second factor by accident", {"SECOND_FACTOR_ROLES": []}, "HOLDPOINT_SECOND_FACTOR_ROLES"),
    ("a second factor of a role that is none", {"SECOND_FACTOR_ROLES": ["boss"]}, "HOLDPOINT_SECOND_FACTOR_ROLES"),
    ("webhooks to this machine", {"HOLDPOINT_WEBHOOK_ALLOW_PRIVATE": ["127.0.0.1:8000"]}, "WEBHOOK_ALLOW_PRIVATE"),
    ("a provider on this machine", {"IDENTITY_ALLOW_PRIVATE": ["localhost:9000"]}, "IDENTITY_ALLOW_PRIVATE"),
    ("links to plain HTTP", {"PUBLIC_URL": "http://holdpoint.clinic.test"}, "HOLDPOINT_PUBLIC_URL="),
    ("a mail password in clear", {"EMAIL_HOST_PASSWORD": "Zk3vQ8tR1m"}, "EMAIL_USE_TLS=true"),
    ("no region", {"DEPLOYMENT_REGION": ""}, "HOLDPOINT_REGION="),
    ("a session cookie over HTTP", {"SESSION_COOKIE_SECURE": False}, "SESSION_COOKIE_SECURE"),
    ("a CSRF cookie over HTTP", {"CSRF_COOKIE_SECURE": False}, "CSRF_COOKIE_SECURE"),
    ("a session cookie for scripts", {"SESSION_COOKIE_HTTPONLY": False}, "SESSION_COOKIE_HTTPONLY"),
    ("plain HTTP", {"SECURE_SSL_REDIRECT": False}, "SECURE_SSL_REDIRECT"),
    ("no HSTS", {"SECURE_HSTS_SECONDS": 0}, "SECURE_HSTS_SECONDS"),
    ("no sealing key", {"LEDGER_KEY": ""}, "HOLDPOINT_LEDGER_KEY"),
    ("the tests' sealing key", {"LEDGER_KEY": b64encode(b"a key of thirty-two bytes, tests").decode()}, "LEDGER_KEY"),
    ("a sealing key of zeros", {"LEDGER_KEY": b64encode(bytes(32)).decode()}, "HOLDPOINT_LEDGER_KEY"),
    ("a short sealing key", {"LEDGER_KEY": b64encode(bytes(range(16))).decode()}, "HOLDPOINT_LEDGER_KEY"),
    ("a sealing key that is none", {"LEDGER_KEY": "no base64!"}, "HOLDPOINT_LEDGER_KEY"),
    ("a key file that is not there", {"LEDGER_KEY": "", "LEDGER_KEY_FILE": "/nowhere/ledger.key"}, "LEDGER_KEY_FILE"),
    ("a key file for everybody", {"LEDGER_KEY": "", "LEDGER_KEY_FILE": __file__}, "chmod 600"),
    ("a signer that is none", {"LEDGER_KEY": "", "LEDGER_SIGNER": "tcp:10.0.0.1"}, "HOLDPOINT_LEDGER_SIGNER"),
    ("a key beside its signer", {"LEDGER_SIGNER": "unix:/run/holdpoint/signer.sock"}, "the signer holds it"),
    ("a key that makes itself", {"LEDGER_KEY_CREATE": True}, "LEDGER_KEY_CREATE"),
    ("a trial's ledger name", {"LEDGER_NAME": "holdpoint.local/ledger"}, "HOLDPOINT_LEDGER_NAME="),
    ("no witness", {"LEDGER_WITNESSES": " "}, "HOLDPOINT_WITNESSES="),
    ("the administrator", database("postgresql://postgres:Zk3vQ8tR1m@db/holdpoint"), "holdpoint_app"),
    ("the role's name as password", database(f"{ROLE}:holdpoint_app@db/holdpoint"), "ALTER ROLE"),
    ("a password that is known", database(f"{ROLE}:postgres@db/holdpoint"), "ALTER ROLE"),
    ("a password from a manual", database(f"{ROLE}:change-me-9871@db/holdpoint"), "ALTER ROLE"),
    ("Valkey without a password", {"REDIS_URL": "redis://valkey.internal:6379/0"}, "REDIS_URL"),
    ("Valkey with a known one", {"REDIS_URL": "redis://:valkey@valkey.internal:6379/0"}, "REDIS_URL"),
    ("RabbitMQ's guest", {"BROKER_URL": "amqp://guest:guest@rabbit.internal//"}, "BROKER_URL"),
    ("RabbitMQ without a word", {"BROKER_URL": "amqp://127.0.0.1//"}, "BROKER_URL"),
]


@pytest.mark.parametrize(("changes", "way_out"), [one[1:] for one in UNSAFE], ids=[one[0] for one in UNSAFE])
def test_what_is_unsafe_is_refused_in_one_line_with_a_way_out(changes: dict[str, Any], way_out: str) -> None:
    settings = safe(**changes)
    if "REDIS_URL" in changes:
        settings.BROKER_URL = settings.REDIS_URL
    with pytest.raises(ImproperlyConfigured) as refusal:
        refuse_unsafe(settings)
    (line,) = str(refusal.value).splitlines()
    assert way_out in line
    assert ": " in line
    secrets = [settings.SECRET_KEY, settings.METRICS_TOKEN, settings.LEDGER_KEY, "Zk3vQ8tR1m", "Wp7xN4sJ2c"]
    assert not [secret for secret in secrets if secret and secret in line]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"REDIS_URL": "unix:///run/valkey.sock?db=0", "BROKER_URL": "unix:///run/valkey.sock?db=0"},
        {"REDIS_URL": "redis://127.0.0.1:6379/0"},
        {"BROKER_URL": "amqp://holdpoint:Wp7xN4sJ2c@rabbit.internal/holdpoint"},
        database("postgresql:///holdpoint?host=/run/postgresql"),
    ],
    ids=["minimal", "sockets", "loopback", "RabbitMQ", "peer authentication"],
)
def test_what_is_safe_is_let_through(changes: dict[str, Any]) -> None:
    assert unsafe(safe(**changes)) == []


def test_everything_that_is_wrong_is_said_at_once_and_only_in_production() -> None:
    changes = {"DEBUG": True, "LEDGER_WITNESSES": "", "ALLOWED_HOSTS": ["*"]}
    with pytest.raises(ImproperlyConfigured) as refusal:
        refuse_unsafe(safe(**changes))
    assert len(str(refusal.value).splitlines()) == 3
    refuse_unsafe(safe(PRODUCTION=False, **changes))


@pytest.mark.parametrize("name", ["SECRET_KEY", "DATABASE_URL", "REDIS_URL"])
def test_an_address_or_secret_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "config.settings.production")
    monkeypatch.delenv(name, raising=False)
    with pytest.raises(ImproperlyConfigured, match=f"^{name} is missing: [^\n]+$"):
        secret_key() if name == "SECRET_KEY" else server_url(variable=name, key="none")


def test_the_queue_is_spelled_as_celery_wants_it() -> None:
    assert broker_url("unix:///run/valkey.sock?db=3") == "redis+socket:///run/valkey.sock?virtual_host=3"
    assert broker_url("amqp://holdpoint:x@rabbit/holdpoint") == "amqp://holdpoint:x@rabbit/holdpoint"
    assert "visibility_timeout" in broker_options("redis://valkey/0")
    assert "visibility_timeout" not in broker_options("amqp://rabbit//")


def test_the_web_server_needs_its_static_files_and_a_place_for_the_figures_of_several_processes(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRODUCTION, settings.STATIC_ROOT = True, str(tmp_path)
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    with pytest.raises(SystemExit, match=r"manage\.py collectstatic --noinput"):
        web_prepared(workers=1)
    (tmp_path / "staticfiles.json").write_text("{}")
    web_prepared(workers=1)
    with pytest.raises(SystemExit, match="PROMETHEUS_MULTIPROC_DIR="):
        web_prepared(workers=2)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "figures"))
    web_prepared(workers=2)
    assert (tmp_path / "figures").is_dir()


def test_figures_of_processes_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    alive = tmp_path / "counter_1.db"
    for file in (alive, tmp_path / f"counter_{ended.pid}.db", tmp_path / f"gauge_all_{ended.pid}.db"):
        file.write_bytes(b"")
    forget_ended_processes(tmp_path)
    assert list(tmp_path.iterdir()) == [alive]
