"""The test providers as one process: npm's packages are installed once into a folder that git ignores."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from config.embedded.paths import PROJECT
from tests.stack.support import free_port, wait_for

HERE = Path(__file__).parent
CACHE = PROJECT / "var" / "test-providers"
MISSING = "npm or its packages are not available: the tests of sign-in by a provider cannot run (Debian: `npm`)."
CLIENT_SECRET = "a secret of the tests"


@dataclass
class Providers:
    """Two running providers. Their people are what a test told them."""

    oidc_port: int
    saml_port: int
    certificate: str

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.oidc_port}"

    @property
    def sso_url(self) -> str:
        return f"http://127.0.0.1:{self.saml_port}/sso"

    @property
    def hosts(self) -> tuple[str, str]:
        return f"127.0.0.1:{self.oidc_port}", f"127.0.0.1:{self.saml_port}"

    def knows(self, name: str, subject: str, *groups: str, **more: Any) -> None:
        person = {"subject": subject, "groups": list(groups)} | more
        httpx.post(f"{self.issuer}/people", json={name: person}).raise_for_status()


@contextmanager
def running(*, redirect_uri: str, acs_url: str) -> Iterator[Providers]:
    folder = installed()
    with TemporaryDirectory() as keys:
        found = Providers(free_port(), free_port(), certificate(Path(keys)))
        environment = {
            **os.environ,
            "OIDC_PORT": str(found.oidc_port),
            "SAML_PORT": str(found.saml_port),
            "REDIRECT_URI": redirect_uri,
            "ACS_URL": acs_url,
            "KEY_FILE": f"{keys}/key.pem",
            "CERT_FILE": f"{keys}/certificate.pem",
        }
        screen = Path(keys) / "screen"
        with screen.open("wb") as output:
            process = subprocess.Popen(
                ["node", "server.mjs"], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            wait_for(
                lambda: process.poll() is not None or screen.read_text().count("ready") == 2,
                seconds=30,
                what="both providers ready",
            )
            assert process.poll() is None, screen.read_text()
            yield found
        finally:
            process.terminate()
            process.wait(timeout=10)


def installed() -> Path:
    """The folder with server and packages; made once for each lock file, and kept."""
    lock = (HERE / "package-lock.json").read_bytes()
    folder = CACHE / sha256(lock).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # several workers of one run
        for name in ("package.json", "package-lock.json", "server.mjs"):
            shutil.copy(HERE / name, folder / name)
        if not (folder / "done").exists():
            _install(folder)
            (folder / "done").touch()
    return folder


def _install(folder: Path) -> None:
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(MISSING)
        pytest.skip(MISSING)


def certificate(folder: Path) -> str:
    """A key and a certificate that signs itself, for SAML."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .sign(key, hashes.SHA256())
    )
    text = made.public_bytes(serialization.Encoding.PEM)
    (folder / "certificate.pem").write_bytes(text)
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return text.decode()
