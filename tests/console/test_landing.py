"""The landing page: the same for everybody; in a demo with logins and a line, and never under production settings."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from config.demo.secrets import DemoSecrets

pytestmark = pytest.mark.unit


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoSecrets:
    monkeypatch.setenv("HOLDPOINT_HOME", str(tmp_path))
    secrets = DemoSecrets()
    for name in ("operator", "reviewer", "admin"):
        secrets.password(name)
    secrets.remember_key("caller", "hp_0123456789_" + "x" * 43)
    secrets.save()
    return secrets


def test_a_demo_shows_logins_and_a_line(demo: DemoSecrets) -> None:
    shown = Client().get("/").content.decode()
    assert demo.password("operator") in shown
    assert "demo-hold/1/attempts" in shown
    assert 'href="/review/"' in shown
    assert not re.search(r"<[^>]+\sstyle=|<script>", shown)


def test_nobody_elsewhere_and_no_other_installation_shows_them(demo: DemoSecrets, settings: Any) -> None:
    assert demo.password("operator") not in Client(REMOTE_ADDR="192.0.2.7").get("/").content.decode()
    settings.DEMO_ALLOWED = False
    shown = Client().get("/").content.decode()
    assert demo.password("operator") not in shown
    assert "hp_0123456789" not in shown
    assert "demo" not in shown.lower()


def test_without_a_demo_the_page_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDPOINT_HOME", str(tmp_path))
    assert "manage.py demo" in Client().get("/").content.decode()
