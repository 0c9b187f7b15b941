"""SCIM 2.0 (RFC 7643, 7644) as data: what is read from a request's document, and what an answer says.

Only what Holdpoint needs of a person is taken: names, phone numbers and addresses are ignored and never stored.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
CONFIG = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"

MOST_OPERATIONS = 100
MOST_MEMBERS = 1000
LONGEST_USER_NAME = 80
LONGEST = 191
_FILTER = re.compile(r'\s*([A-Za-z][A-Za-z.]{0,40})\s+eq\s+"((?:[^"\\]|\\.){0,200})"\s*', re.IGNORECASE)
_MEMBER = re.compile(r'members\[\s*value\s+eq\s+"([^"\\]{1,64})"\s*\]', re.IGNORECASE)


class ScimInvalid(Exception):
    """The document cannot be used; `kind` is RFC 7644's scimType."""

    def __init__(self, detail: str, *, kind: str = "invalidValue") -> None:
        super().__init__(detail)
        self.detail = detail
        self.kind = kind


@dataclass(frozen=True, slots=True)
class UserChange:
    """What a request says about a person. None: it says nothing about this."""

    user_name: str | None = None
    external_id: str | None = None
    active: bool | None = None
    email: str | None = None


@dataclass(slots=True)
class GroupChange:
    """What a request says about a group. `members` replaces all members."""

    name: str | None = None
    external_id: str | None = None
    members: set[UUID] | None = None
    add: set[UUID] = field(default_factory=set)
    remove: set[UUID] = field(default_factory=set)


def filter_parse(text: str, *, allowed: Mapping[str, str]) -> dict[str, str]:
    """`userName eq "x"` as {column: value}. Other operators and attributes are refused, not ignored: an ignored filter
    would return everybody."""
    found = _FILTER.fullmatch(text)
    column = allowed.get(found.group(1).lower()) if found else None
    if found is None or column is None:
        names = ", ".join(allowed)
        raise ScimInvalid(f'The filters are: <attribute> eq "<value>" with one of {names}.', kind="invalidFilter")
    return {column: re.sub(r"\\(.)", r"\1", found.group(2))}


def user_document(body: Any) -> UserChange:
    """A whole person, as POST and PUT send it."""
    document = _object(body)
    change = _user_part(document)
    if not change.user_name:
        raise ScimInvalid("userName is required.")
    return UserChange(change.user_name, change.external_id, change.active, change.email)


def user_patch(body: Any) -> UserChange:
    """All operations of a PATCH, the later one winning. Attributes that are not kept are accepted and ignored."""
    merged: dict[str, Any] = {}
    for op, path, value in _operations(body):
        if not path:
            merged |= {key.lower(): item for key, item in _object(value).items()}
        elif op == "remove":
            if path.lower() in {"active", "username"}:
                raise ScimInvalid("This attribute cannot be removed.", kind="mutability")
            merged[path.lower()] = "" if path.lower() == "externalid" else None
        else:
            merged[path.lower()] = value
    return _user_part(merged)


def group_document(body: Any) -> GroupChange:
    document = {key.lower(): value for key, value in _object(body).items()}
    name = _text(document.get("displayname"), "displayName", LONGEST)
    if not name:
        raise ScimInvalid("displayName is required.")
    external = _text(document.get("externalid"), "externalId", LONGEST)
    return GroupChange(name=name, external_id=external, members=_members(document.get("members") or []))


def group_patch(body: Any) -> GroupChange:
    change = GroupChange()
    for op, path, value in _operations(body):
        if not path:
            for key, item in _object(value).items():
                _group_operation(change, op, key, item)
        else:
            _group_operation(change, op, path, value)
    return change


def _group_operation(change: GroupChange, op: str, path: str, value: Any) -> None:
    lowered = path.lower()
    single = _MEMBER.fullmatch(path)
    if lowered == "displayname" and op != "remove":
        change.name = _text(value, "displayName", LONGEST)
    elif lowered == "externalid":
        change.external_id = "" if op == "remove" else _text(value, "externalId", LONGEST)
    elif single and op == "remove":
        _take(change, _members([{"value": single.group(1)}]))
    elif lowered == "members":
        _members_operation(change, op, value)
    elif lowered not in {"id", "schemas", "meta"}:
        raise ScimInvalid("This path is not known.", kind="invalidPath")


def _members_operation(change: GroupChange, op: str, value: Any) -> None:
    if op == "remove":
        if value is None:
            change.members, change.add, change.remove = set(), set(), set()
        else:
            _take(change, _members(value))
    elif op == "replace":
        change.members, change.add, change.remove = _members(value), set(), set()
    else:
        named = _members(value)
        change.add |= named
        change.remove -= named


def _take(change: GroupChange, named: set[UUID]) -> None:
    change.remove |= named
    change.add -= named


def _user_part(document: Mapping[str, Any]) -> UserChange:
    lowered = {key.lower(): value for key, value in document.items()}
    return UserChange(
        user_name=_text(lowered.get("username"), "userName", LONGEST_USER_NAME),
        external_id=_text(lowered.get("externalid"), "externalId", LONGEST),
        active=_flag(lowered.get("active")),
        email=_email(lowered.get("emails")),
    )


def _operations(body: Any) -> list[tuple[str, str, Any]]:
    document = {key.lower(): value for key, value in _object(body).items()}
    listed = document.get("operations")
    if not isinstance(listed, list) or not 0 < len(listed) <= MOST_OPERATIONS:
        raise ScimInvalid(f"Operations is a list of 1 to {MOST_OPERATIONS} operations.", kind="invalidSyntax")
    return [_operation(_object(one)) for one in listed]


def _operation(one: Mapping[str, Any]) -> tuple[str, str, Any]:
    lowered = {key.lower(): value for key, value in one.items()}
    op, path = lowered.get("op"), lowered.get("path") or ""
    if not isinstance(op, str) or op.lower() not in {"add", "replace", "remove"} or not isinstance(path, str):
        raise ScimInvalid("An operation has op (add, replace or remove), path and value.", kind="invalidSyntax")
    if op.lower() == "remove" and not path:
        raise ScimInvalid("remove needs a path.", kind="noTarget")
    prefix = f"{USER}:"
    return op.lower(), path.removeprefix(prefix), lowered.get("value")


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScimInvalid("The document is not a JSON object.", kind="invalidSyntax")
    return value


def _text(value: Any, name: str, longest: int) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > longest or any(ord(letter) < 32 for letter in value):
        raise ScimInvalid(f"{name} is a text of at most {longest} characters.")
    return value.strip()


def _flag(value: Any) -> bool | None:
    """Some providers send the words."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise ScimInvalid("active is true or false.")


def _email(value: Any) -> str | None:
    if not isinstance(value, list):
        return None
    found = [one for one in value if isinstance(one, dict) and isinstance(one.get("value"), str)]
    chosen = next((one for one in found if one.get("primary") is True), found[0] if found else None)
    return chosen["value"][:254] if chosen else None


def _members(value: Any) -> set[UUID]:
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or len(value) > MOST_MEMBERS:
        raise ScimInvalid(f"members is a list of at most {MOST_MEMBERS} members.", kind="tooMany")
    return {_id(one.get("value") if isinstance(one, dict) else one) for one in value}


def _id(value: Any) -> UUID:
    try:
        return UUID(value)
    except (ValueError, TypeError, AttributeError) as error:
        raise ScimInvalid("A member's value is the id of a person here.") from error


def list_document(found: list[dict[str, Any]], *, total: int, start: int) -> dict[str, Any]:
    return {
        "schemas": [LIST],
        "totalResults": total,
        "startIndex": start,
        "itemsPerPage": len(found),
        "Resources": found,
    }


def error_document(*, status: int, detail: str, kind: str = "") -> dict[str, Any]:
    return {"schemas": [ERROR], "status": str(status), "detail": detail} | ({"scimType": kind} if kind else {})


def config_document() -> dict[str, Any]:
    return {
        "schemas": [CONFIG],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": 100},
        "changePassword": {"supported": False},
        "sort": {"supported": False},
        "etag": {"supported": False},
        "authenticationSchemes": [
            {"type": "oauthbearertoken", "name": "Bearer token", "description": "The SCIM token of this provider."}
        ],
    }


def resource_types() -> list[dict[str, Any]]:
    kind = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
    return [
        {"schemas": [kind], "id": name, "name": name, "endpoint": f"/{name}s", "schema": schema}
        for name, schema in (("User", USER), ("Group", GROUP))
    ]


def schema_documents() -> list[dict[str, Any]]:
    """The attributes that are kept, and no others."""
    text: Callable[..., dict[str, Any]] = _attribute
    return [
        {
            "id": USER,
            "name": "User",
            "attributes": [
                text("userName", required=True, uniqueness="server"),
                text("externalId"),
                text("active", type="boolean"),
                text("emails", type="complex", multi=True, returned="never"),
            ],
        },
        {
            "id": GROUP,
            "name": "Group",
            "attributes": [
                text("displayName", required=True, uniqueness="server"),
                text("externalId"),
                text("members", type="complex", multi=True),
            ],
        },
    ]


def _attribute(
    name: str,
    *,
    type: str = "string",  # the word of RFC 7643
    required: bool = False,
    multi: bool = False,
    uniqueness: str = "none",
    returned: str = "default",
) -> dict[str, Any]:
    return {
        "name": name,
        "type": type,
        "multiValued": multi,
        "required": required,
        "caseExact": False,
        "mutability": "readWrite",
        "returned": returned,
        "uniqueness": uniqueness,
    }
