"""Every error is application/problem+json, leads to a page that helps, and repeats nothing that was submitted."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from reasoncodes.base.errors import PROBLEMS, DomainError
from tests.cast import Cast

URL = "/api/v1/reason-codes"
MARKER = "zx81marker"


def check(answer: Any, *, status: int, code: str) -> dict[str, Any]:
    """The answer is the problem that was expected, whole, and without the marker."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    body = json.loads(answer.content)
    assert urlsplit(body["type"]).path == f"/problems/{code}"
    assert body["status"] == status
    assert body["title"] == PROBLEMS[code].title
    assert body["detail"]
    assert body["instance"] == f"urn:holdpoint:request:{answer['X-Request-ID']}"
    assert MARKER not in answer.content.decode() + str(answer.headers)
    return dict(body)


def write(api: APIClient, **changes: Any) -> Any:
    body = {"scope": "human_decline", "code": "tired", "label": "Tired"} | changes
    return api.post(URL, body)


@pytest.fixture
def api(cast: Cast) -> APIClient:
    return cast.api("orchestrator:read", "orchestrator:write")


def test_a_bad_body_is_400_and_every_place_has_a_pointer(api: APIClient) -> None:
    body = check(
        write(api, scope=MARKER, code=MARKER.upper() + "!", label="", applicable_step_kinds=["ok_kind", MARKER + " "]),
        status=400,
        code="invalid-input",
    )
    assert body["reason_code"] == "invalid_input"
    assert {error["pointer"] for error in body["errors"]} == {"/scope", "/code", "/label"}


def test_a_pointer_leads_into_lists(api: APIClient) -> None:
    body = check(write(api, applicable_step_kinds=["fine", MARKER + "!"]), status=400, code="invalid-input")
    assert [error["pointer"] for error in body["errors"]] == ["/applicable_step_kinds/1"]


def test_an_unknown_field_is_400_and_its_name_is_not_repeated(api: APIClient) -> None:
    body = check(write(api, **{MARKER: MARKER}), status=400, code="invalid-input")
    assert body["errors"] == [{"pointer": "", "message": "is not a known field", "rule": "unknown_field"}]


def test_an_unknown_filter_is_400_and_the_known_ones_are_named(api: APIClient) -> None:
    body = check(api.get(URL, {MARKER: MARKER}), status=400, code="unknown-parameter")
    assert "active, cursor, org_id, page_size, scope" in body["errors"][0]["message"]


@pytest.mark.parametrize("query", [{"scope": MARKER}, {"active": MARKER}, {"org_id": MARKER}, {"cursor": MARKER}])
def test_a_bad_filter_is_400_with_a_pointer(api: APIClient, query: dict[str, str]) -> None:
    body = check(api.get(URL, query), status=400, code="invalid-input")
    assert body["errors"][0]["pointer"] == f"/{next(iter(query))}"


def test_a_filter_that_is_given_twice_is_400(api: APIClient) -> None:
    check(api.get(f"{URL}?scope=halt&scope=denial"), status=400, code="invalid-input")


def test_no_credential_is_401(db: None) -> None:
    check(APIClient().get(URL, HTTP_AUTHORIZATION=f"Bearer {MARKER}"), status=401, code="credential-missing")
    answer = APIClient().get(URL)
    check(answer, status=401, code="credential-missing")
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_missing_scope_is_403_and_named(cast: Cast) -> None:
    answer = write(cast.api("orchestrator:read"), label=MARKER)
    assert check(answer, status=403, code="scope-missing")["required_scope"] == "orchestrator:write"


@pytest.mark.parametrize(
    "path", [f"/api/v1/{MARKER}", f"/api/{MARKER}/", f"{URL}/{MARKER}", f"/api/v1//{MARKER}", f"/%00{MARKER}"]
)
@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_an_unknown_address_is_404_without_the_address(api: APIClient, path: str, accept: str) -> None:
    check(api.get(path, HTTP_ACCEPT=accept), status=404, code="not-found")


@pytest.mark.parametrize("method", ["put", "delete", "patch"])
def test_a_method_that_an_address_does_not_answer_is_405_and_the_others_are_named(api: APIClient, method: str) -> None:
    answer = getattr(api, method)(URL, {"label": MARKER})
    check(answer, status=405, code="method-not-allowed")
    assert {"GET", "POST"} <= set(answer["Allow"].split(", "))


@pytest.mark.parametrize("url", ["/api/v1/execution/slug/1/attempts", "/health", "/metrics", "/problems/"])
def test_plain_views_answer_405_the_same_way(api: APIClient, url: str) -> None:
    answer = api.delete(url, {"label": MARKER})
    check(answer, status=405, code="method-not-allowed")
    assert "DELETE" not in answer["Allow"]


def test_a_media_type_that_we_do_not_speak_is_406_or_415(api: APIClient) -> None:
    check(api.get(URL, HTTP_ACCEPT=f"application/{MARKER}"), status=406, code="not-acceptable")
    for kind in ("text/plain", f"application/{MARKER}", "application/x-www-form-urlencoded", "multipart/form-data"):
        check(api.post(URL, MARKER, content_type=kind), status=415, code="unsupported-media-type")


def test_a_form_larger_than_the_limit_is_not_an_internal_error(cast: Cast) -> None:
    """Looking for a CSRF token, Django reads forms: a large one is refused there, before DRF sees it."""
    client = APIClient(raise_request_exception=False, enforce_csrf_checks=True)
    client.force_login(cast.operator)
    form = b"label=" + b"x" * (2 * 1024 * 1024)
    answer = client.post(URL, form, content_type="application/x-www-form-urlencoded")
    assert answer.status_code in {403, 413}
    assert answer["Content-Type"] == "application/problem+json"


def test_a_host_that_is_not_ours_is_400_not_500(db: None) -> None:
    client = Client(raise_request_exception=False)
    for accept in ("application/json", "text/html"):
        answer = client.get(URL, headers={"host": f"{MARKER}.example", "accept": accept})
        check(answer, status=400, code="invalid-input")
    page = client.get("/", headers={"host": f"{MARKER}.example", "accept": "text/html"})
    assert page.status_code == 400
    assert MARKER not in page.content.decode()


def breaking(statement: str) -> Any:
    """Makes the database fail in a way that nobody foresaw, for the requests inside."""

    def execute(run: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if statement in sql:
            raise RuntimeError(f"{MARKER}: {params}")
        return run(sql, params, many, context)

    return connection.execute_wrapper(execute)


def test_what_nobody_foresaw_is_500_without_its_text(api: APIClient) -> None:
    with breaking("reasoncodes_reasoncode"):
        check(api.get(URL), status=500, code="internal-error")
    assert api.get(URL).status_code == 200


def test_outside_the_api_people_get_a_page(cast: Cast) -> None:
    console = cast.console(cast.operator)
    missing = console.get(f"/{MARKER}", headers={"accept": "text/html"})
    assert missing.status_code == 404
    assert "text/html" in missing["Content-Type"]
    assert MARKER not in missing.content.decode()
    with breaking("reasoncodes_reasoncode"):
        broken = console.get("/admin/reasoncodes/reasoncode/", headers={"accept": "text/html"})
    assert broken.status_code == 500
    assert MARKER not in broken.content.decode()
    check(Client().get(f"/{MARKER}"), status=404, code="not-found")


@pytest.fixture
def lost_database(transactional_db: None) -> Any:
    """A connection that cannot be made, as when PostgreSQL is stopped."""
    cast = Cast()
    api, console = cast.api("orchestrator:read", "attempts:create"), cast.console(cast.operator)
    known = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(HOST="/nowhere", OPTIONS={"connect_timeout": 1})

    def come_back() -> None:
        connection.close()
        connection.settings_dict.update(known)

    yield api, console, come_back
    come_back()


def test_without_the_database_every_door_is_503_and_it_heals_by_itself(lost_database: Any) -> None:
    api, console, come_back = lost_database
    doors: list[Callable[[], Any]] = [
        lambda: api.get(URL),
        lambda: api.post("/api/v1/execution/slug/1/attempts", {}),
        lambda: console.get("/api/v1/ledger/entries"),
        lambda: console.get("/admin/governance/organization/"),
        lambda: console.get("/admin/"),
    ]
    for door in doors:
        answer = door()
        body = check(answer, status=503, code="record-unavailable")
        assert body["reason_code"] == "record_unavailable"
        assert answer["Retry-After"] == "5"
    come_back()
    assert api.get(URL).status_code == 200
    assert console.get("/admin/governance/organization/").status_code == 200


@pytest.mark.parametrize("code", sorted(PROBLEMS))
def test_every_problem_has_a_title_a_status_advice_and_a_page(client: Client, code: str) -> None:
    problem = PROBLEMS[code]
    assert problem.title
    assert 400 <= problem.status < 600
    assert problem.summary().endswith(".")
    assert problem.advice()
    page = client.get(f"/problems/{code}")
    assert page.status_code == 200
    text = page.content.decode()
    assert problem.title in text
    assert str(problem.status) in text
    assert f"/problems/{code}" in client.get("/problems/").content.decode()


@pytest.mark.parametrize("path", [f"/problems/{MARKER}", "/problems/Not-A-Problem", "/problems/a/b"])
def test_an_unknown_problem_has_no_page(client: Client, path: str) -> None:
    check(client.get(path), status=404, code="not-found")


def test_one_name_means_one_problem() -> None:
    with pytest.raises(TypeError, match="is taken"):
        type("Impostor", (DomainError,), {"code": "not-found"})
    assert PROBLEMS["not-found"].__name__ == "NotFound"
