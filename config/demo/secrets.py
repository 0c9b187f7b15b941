"""The demo's passwords and keys in clear text: created once per HOLDPOINT_HOME, stored there (0600), never in the
database."""

import json
import os
from pathlib import Path
from secrets import token_hex
from typing import Any

from config.env import home


class DemoSecrets:
    """A small file of secrets. If it is lost, the next start makes new passwords and keys."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or home() / "demo.json"
        self.load()

    def load(self) -> None:
        """Called again under the demo's lock, because another process may have written the file since."""
        try:
            found: Any = json.loads(self.path.read_text())
        except (OSError, ValueError):
            found = {}
        self.values = {name: self._section(found, name) for name in ("passwords", "password_hashes", "keys")}

    @staticmethod
    def _section(found: Any, name: str) -> dict[str, str]:
        section = found.get(name) if isinstance(found, dict) else None
        return section if isinstance(section, dict) else {}

    def password(self, username: str) -> str:
        return str(self.values["passwords"].setdefault(username, f"demo-{token_hex(6)}"))

    def password_hash(self, username: str) -> str | None:
        return self.values["password_hashes"].get(username)

    def remember_password_hash(self, username: str, value: str) -> None:
        self.values["password_hashes"][username] = value

    def key(self, name: str) -> str | None:
        return self.values["keys"].get(name)

    def remember_key(self, name: str, secret: str) -> None:
        self.values["keys"][name] = secret

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        # Created with 0600: a chmod after writing would leave a moment in which others can read it.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            json.dump(self.values, stream, indent=2)
        # A rename is atomic: a killed process leaves the old file or the new one, never half of one.
        temporary.replace(self.path)
