"""Where Holdpoint is and who we are, from the environment. Keys never come from a command line."""

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from holdpoint_client.errors import SettingMissing


@dataclass(frozen=True, slots=True)
class Settings:
    url: str
    key: str = field(repr=False)
    executor_key: str = field(repr=False)


def settings_from(url: str | None, key: str | None, executor_key: str | None) -> Settings:
    """What is not given comes from HOLDPOINT_URL, HOLDPOINT_KEY and HOLDPOINT_EXECUTOR_KEY (else the same key)."""
    url = url or os.environ.get("HOLDPOINT_URL", "")
    key = key or os.environ.get("HOLDPOINT_KEY", "")
    executor_key = executor_key or os.environ.get("HOLDPOINT_EXECUTOR_KEY", "") or key
    if not _address(url):
        raise SettingMissing("set HOLDPOINT_URL to Holdpoint's address, such as https://holdpoint.example")
    if not key and not executor_key:
        raise SettingMissing("set HOLDPOINT_KEY to an API key of yours")
    return Settings(url.rstrip("/"), key, executor_key)


def _address(url: str) -> bool:
    try:
        found = urlsplit(url)
        return found.scheme in {"http", "https"} and bool(found.hostname)
    except ValueError:
        return False
