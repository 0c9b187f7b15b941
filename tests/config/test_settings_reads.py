"""Who reads the settings: doors, wiring and the `configured` modules. Everybody else is told."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
APPS = ("governance", "attempts", "workflows", "reasoncodes")
MAY = {"api", "admin", "web", "tasks", "management", "migrations", "apps", "configured"}
# A name of Django's, which its models need while they are declared.
OF_DJANGO = {"AUTH_USER_MODEL"}


def reads(tree: ast.AST) -> Iterator[str]:
    """What a module takes from `settings`, under whatever name; the object itself, if it goes elsewhere."""
    names = {
        given.asname or given.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "django.conf"
        for given in node.names
    }
    taken = {
        id(node.value): node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            yield taken.get(id(node), node.id)
        elif isinstance(node, ast.Import) and any(one.name.startswith("django.conf") for one in node.names):
            yield "django.conf"


def may_read(path: Path) -> bool:
    return not MAY.isdisjoint({*path.parts, path.stem})


@pytest.mark.parametrize("app", APPS)
def test_only_doors_and_the_configured_modules_read_settings(app: str) -> None:
    files = [path.relative_to(ROOT) for path in (ROOT / app).rglob("*.py")]
    found = {str(path): set(reads(ast.parse((ROOT / path).read_text()))) for path in files if not may_read(path)}
    assert {path: names - OF_DJANGO for path, names in found.items() if names - OF_DJANGO} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from django.conf import settings\nsettings.REDIS_URL", {"REDIS_URL"}),
        ("from django.conf import settings as s\ngetattr(s, name)", {"s"}),
        ("import django.conf\ndjango.conf.settings.REDIS_URL", {"django.conf"}),
        ("from django.conf import settings\nForeignKey(settings.AUTH_USER_MODEL)", {"AUTH_USER_MODEL"}),
        ("self.settings.REDIS_URL", set()),
    ],
)
def test_every_way_to_read_them_is_seen(source: str, found: set[str]) -> None:
    assert set(reads(ast.parse(source))) == found
