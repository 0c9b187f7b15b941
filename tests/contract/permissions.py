"""Who may go where: every route and page that the URL resolver knows, tried by everybody, in the words of
docs/permissions.md.

A cell is what the door says, not what becomes of the request: 400, 409 and 422 are said to somebody who may.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.template.base import Origin
from django.template.loaders.base import Loader
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone
from rest_framework.request import Request

from attempts.reviews.web.answers import ANSWERS
from governance.people.api import ScopeRequired, ServicePrincipal
from governance.people.models import User
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import credential_for_secret
from governance.tenancy.models import Organization
from reasoncodes.base.api import ApiView
from reasoncodes.base.errors import ScopeMissing
from reasoncodes.base.tenancy import every_tenant, leave_scope
from tests.cast import Cast
from tests.contract.world import World, undone

YES, UNKNOWN, REFUSED, UNSEEN, NEVER = "yes", "401", "403", "404", "never"
FORM = "application/x-www-form-urlencoded"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ANONYMOUS, NO_ROLE, ADMINISTRATOR = "anonymous", "no role", "administrator"
STRANGER, STRANGERS_KEY = "other organization", "other organization's key"
PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
# Not pages: what catches the rest, what belongs to signing in, what only redirects, and a person's own saved filters.
NO_PAGES = re.compile(
    r"[\^(]|/login/|/logout/|/password_change/|/jsi18n/|<path:content_type_id>|<path:object_id>/$|/filters/"
)
POSTED = re.compile(
    r"/(add|delete|change|bulk|withdraw|purge|ask|validate|simulate|edit|mine|propose)/$|/<slug:area>/$|/bulk$|notifications"
)


@dataclass(frozen=True)
class Row:
    """One method of one route; `body` is the example that the OpenAPI document gives."""

    method: str
    route: str
    operation: str = ""
    body: Any = None
    view: Any = None

    @property
    def name(self) -> str:
        return f"{self.method} /" + PARAMETER.sub(r"{\2}", self.route)

    @property
    def has_id(self) -> bool:
        return "<uuid:" in self.route or "<path:object_id>" in self.route


def patterns(start: str) -> Iterator[tuple[str, Any]]:
    """Every route below an address with its callback."""

    def walk(entries: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for entry in entries:
            route = prefix + str(entry.pattern)
            if isinstance(entry, URLResolver):
                yield from walk(entry.url_patterns, route)
            elif isinstance(entry, URLPattern) and route.startswith(start):
                yield route, entry.callback

    return walk(get_resolver().url_patterns, "")


def api_rows(document: dict[str, Any]) -> list[Row]:
    """Every method that a view of the API answers, also those that the document leaves out: changing the record."""
    found = []
    for route, callback in patterns("api/v1/"):
        view = getattr(callback, "view_class", None) or callback.cls
        described = document["paths"].get("/" + PARAMETER.sub(r"{\2}", route), {})
        for method in METHODS:
            if hasattr(view, method.lower()):
                operation = described.get(method.lower(), {})
                found.append(Row(method, route, operation.get("operationId", ""), _example(operation), view))
    return sorted(found, key=lambda row: row.route)


def _example(operation: dict[str, Any]) -> Any:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return next((one["value"] for one in content.get("examples", {}).values()), {})


def console_rows() -> list[Row]:
    """Every page of /admin/ and /review/; what can be done to a row is one page for each act."""
    found = []
    for start in ("admin/", "review/"):
        for route, _ in dict(patterns(start)).items():
            if route.endswith("<slug:verb>/"):
                found += [Row(m, route.replace("<slug:verb>", v)) for v in _acts(route) for m in ("GET", "POST")]
            elif route.endswith("<slug:verb>"):
                found += [Row("POST", route.replace("<slug:verb>", verb)) for verb in ANSWERS]
            elif not NO_PAGES.search(route):
                found += [Row(m, route) for m in (("GET", "POST") if POSTED.search(route) else ("GET",))]
    return sorted(found, key=lambda row: row.route)


def _model(route: str) -> Any:
    parts = route.split("/")
    return apps.get_model(parts[1], parts[2])


def _acts(route: str) -> list[str]:
    return [act.verb for act in getattr(admin.site._registry[_model(route)], "acts", ())]


class BlankLoader(Loader):
    """Every template is empty: who may see a page is settled before it is drawn, and drawing is most of the time."""

    is_usable = True

    def get_template_sources(self, template_name: str) -> Iterator[Origin]:
        yield Origin(name=template_name, template_name=template_name, loader=self)

    def get_contents(self, origin: Origin) -> str:
        return ""


# Of those with the same permissions one stands for all: tests/governance/test_roles.py compares what roles give. Of the
# nine owners three: whose area is tried, whose the legal holds are, and one whose neither is.
OWNERS = ("owner_privacy", "owner_global_compliance", "owner_trust_operations")
MEMBERS = ("operator", "auditor", "reviewer", "sa_qa", *OWNERS)
LIKE_OTHERS = {"sa_qa", *OWNERS[1:]}  # told the same as another nearly everywhere: tried in a soak


def refused_at_the_door(row: Row, principal: Any) -> bool:
    """What the views' own permission class says to somebody, without the rest of a request around it: most of the table
    is refused there. That every route has this door, those columns show that are tried by requests alone."""
    if principal is None or not issubclass(row.view, ApiView):
        return False
    request = Request(HttpRequest())
    request.user, request._request.method = principal, row.method
    try:
        ScopeRequired().has_permission(request, row.view())
    except ScopeMissing:
        return True
    finally:
        leave_scope()
    return False


def people(world: World) -> dict[str, User | None]:
    """Everybody who can sign in, and nobody."""
    users = {user.username: user for user in User.objects.all()}
    nobody = users.get("nobody") or User.objects.create_user("nobody", is_staff=True)
    named = {name: users[name] for name in MEMBERS}
    return {ANONYMOUS: None, NO_ROLE: nobody, **named, ADMINISTRATOR: users["admin"], STRANGER: world.stranger}


def keys(world: World) -> dict[str, str]:
    """A key for each scope, and one of the other organization with all of them."""
    cast = Cast()
    with every_tenant():
        ours, other = (Organization.objects.get(slug=slug) for slug in ("demo", "other"))
        own = {str(scope): cast.key(scope, organization=ours, responsible=world.everybody) for scope in ApiScope}
        return own | {STRANGERS_KEY: cast.key(organization=other, responsible=world.stranger)}


def service(secret: str) -> ServicePrincipal:
    credential = credential_for_secret(secret=secret, at=timezone.now())
    assert credential is not None
    return ServicePrincipal(credential)


def cell(row: Row, answer: Any) -> str:
    """The door's word. Being sent to the sign-in page is 401 in other words; what the admin does not find it says on
    its first page."""
    to = answer.get("Location", "") if answer.status_code == 302 else ""
    if "/login/" in to:
        return UNKNOWN
    if row.has_id and to == reverse("admin:index"):
        return UNSEEN
    if answer.status_code == 409 and b"record-immutable" in answer.content:
        return NEVER
    return str(answer.status_code) if answer.status_code in {401, 403, 404, 405} else YES


class Trial:
    """Addresses and bodies that exist, made once; every try is rolled back."""

    def __init__(self, world: World, rows: Sequence[Row]) -> None:
        self.world = world
        self.rows = [(row, self._address(row), self._body(row)) for row in rows]

    def _address(self, row: Row) -> str:
        own = self.world.special.get(row.operation, {})

        def value(found: re.Match[str]) -> str:
            name = found[2]
            if name == "object_id":
                return self.world.row_of(_model(row.route))
            return own.get(name) or next(iter(self.world.ids.get(name, ())), "") or str(uuid4())

        return "/" + PARAMETER.sub(value, row.route)

    def _body(self, row: Row) -> bytes:
        body = row.body or {}
        if row.view is None:
            return urlencode(self.world.values | {"hours": 1} if row.route.startswith("review/") else {}).encode()
        known = self.world.values | self.world.special.get(row.operation, {})
        return json.dumps(body | {n: v for n, v in known.items() if n in body}).encode()

    def column(self, client: Any, *, principal: Any = None, kept: bool = False) -> dict[str, str]:
        """What somebody is told everywhere. `kept`: nothing is rolled back, because nothing may be changed."""
        return {
            row.name: REFUSED if refused_at_the_door(row, principal) else cell(row, self.ask(client, index, kept=kept))
            for index, (row, *_) in enumerate(self.rows)
        }

    def ask(self, client: Any, index: int, *, kept: bool = False, query: str = "") -> Any:
        row, address, body = self.rows[index]
        sent = {} if row.method == "GET" else {"data": body, "content_type": "application/json" if row.view else FORM}
        if kept:
            return self._answer(client, row, address + query, sent)
        with undone():
            return self._answer(client, row, address + query, sent)

    @staticmethod
    def _answer(client: Any, row: Row, address: str, sent: dict[str, Any]) -> Any:
        answer = client.generic(row.method, address, **sent)
        assert answer.status_code < 500, (row.name, address, answer.content)
        if answer.streaming:
            answer.close()
        return answer


# -- the words -----------------------------------------------------------------------------
def line(row: str, cells: dict[str, str]) -> str:
    """`| GET /x | who | scopes | otherwise |`. Not named: 403; anonymous, unless it is named: 401."""
    scopes = set(ApiScope) & set(cells)
    may = [role for role, said in cells.items() if said == YES]
    persons, services = [r for r in may if r not in scopes], [r for r in may if r in scopes]
    more = [f"{said}: {_names(roles, cells)}" for said, roles in sorted(_otherwise(cells).items())]
    return f"| `{row}` | {_names(persons, cells) or '–'} | {', '.join(services) or '–'} | {'; '.join(more) or '–'} |"


def cells_of(text: str, roles: Sequence[str]) -> dict[str, str]:
    """A line, read back."""
    _, _, persons, services, more, _ = (part.strip() for part in text.split("|"))
    cells = {role: _default(role) for role in roles}
    parts = [f"{YES}: {persons}", f"{YES}: {services}", *more.split("; ")]
    for said, names in (part.split(": ", 1) for part in parts if part.strip("– ")):
        named = {role for name in names.split(", ") for role in _groups(roles).get(name, [name])}
        cells |= dict.fromkeys(named & set(roles), said)
    return cells


def _default(role: str) -> str:
    return UNKNOWN if role == ANONYMOUS else REFUSED


def _otherwise(cells: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for role, said in cells.items():
        if said not in {YES, _default(role)}:
            found.setdefault(said, []).append(role)
    return found


def _groups(roles: Iterable[str]) -> dict[str, list[str]]:
    known = list(roles)
    return {
        "every role": [r for r in known if r in MEMBERS],
        "every scope": [r for r in known if r in set(ApiScope)],
        "owners": [r for r in known if r.startswith("owner_")],
        "reviewers": [r for r in known if r in {"reviewer", "sa_qa"}],
    }


def _names(roles: Sequence[str], cells: dict[str, str]) -> str:
    """Groups by one word where all of them are meant."""
    left, said = list(roles), []
    for name, group in _groups(cells).items():
        if group and set(group) <= set(left):
            said.append(name)
            left = [r for r in left if r not in group]
    return ", ".join(said + left)
