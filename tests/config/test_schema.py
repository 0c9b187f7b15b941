"""OpenAPI 3.1: valid, complete, and the page that shows it loads nothing from elsewhere."""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from tests.cast import Cast

WITH_BODY = {"post", "put", "patch"}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    answer = Client().get("/api/schema/", headers={"accept": "application/vnd.oai.openapi+json"})
    assert answer.status_code == 200
    return dict(answer.json())


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def test_the_generator_finds_nothing_to_warn_about(tmp_path: Any) -> None:
    out = StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "schema.yml"), stderr=out)
    assert "Warning" not in out.getvalue()


def test_it_is_openapi_3_1(schema: dict[str, Any]) -> None:
    assert schema["openapi"].startswith("3.1")
    assert schema["paths"]
    for name, component in schema["components"]["schemas"].items():
        Draft202012Validator.check_schema(component), name


def test_every_operation_has_a_name_of_its_own(schema: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(schema)]
    assert len(names) == len(set(names))


def test_every_operation_lists_its_errors_as_problems(schema: dict[str, Any]) -> None:
    for path, method, operation in operations(schema):
        for status in ("400", "401", "403", "404", "500", "503"):
            content = operation["responses"][status]["content"]
            assert list(content) == ["application/problem+json"], (path, method, status)


def test_every_body_that_is_asked_for_has_an_example(schema: dict[str, Any]) -> None:
    missing = [
        operation["operationId"]
        for _, method, operation in operations(schema)
        if method in WITH_BODY and "requestBody" in operation
        for content in operation["requestBody"]["content"].values()
        if not content.get("examples")
    ]
    assert missing == []


def test_a_list_is_described_as_the_page_that_it_answers(schema: dict[str, Any], cast: Cast) -> None:
    for path in ("/api/v1/reason-codes", "/api/v1/ledger/entries"):
        operation = schema["paths"][path]["get"]
        content = operation["responses"]["200"]["content"]["application/json"]["schema"]
        described = schema["components"]["schemas"][content["$ref"].rsplit("/", 1)[-1]]
        assert set(described["properties"]) == {"next", "previous", "results"}
        names = {parameter["name"] for parameter in operation["parameters"]}
        assert {"cursor", "page_size", "org_id"} <= names


def test_what_the_schema_promises_is_what_comes(schema: dict[str, Any], cast: Cast) -> None:
    api: APIClient = cast.api()
    for path, name in (("/api/v1/reason-codes", "ReasonCodeOut"), ("/api/v1/ledger/entries", "LedgerEntryOut")):
        row = api.get(path).json()["results"][0]
        component = schema["components"]["schemas"][name.removesuffix("Out") + "Out"]
        assert set(row) == set(component["properties"])


def test_the_docs_page_loads_nothing_from_elsewhere(db: None) -> None:
    page = Client().get("/api/docs/")
    assert page.status_code == 200
    text = page.content.decode()
    assert re.findall(r"""(?:src|href)=["'](?:https?:)?//""", text) == []
    assert re.findall(r"https?://(?!testserver)[\w.-]+", text) == []
    for address in re.findall(r"""(?:src|href)=["'](/static/[^"']+)["']""", text):
        answer = Client().get(address)
        assert answer.status_code == 200, address
        answer.close()
