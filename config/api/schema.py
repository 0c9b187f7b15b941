"""The OpenAPI 3.1 document: every operation has an id and lists the problems that it may answer with."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework.fields import DecimalField, JSONField
from rest_framework.settings import api_settings

from config.api.problems import CONTENT_TYPE, known_problems
from governance.people.rules.roles import PERMISSION_FOR_SCOPE

COMMON = {
    "400": "The request does not have the expected shape.",
    "401": "No valid credential.",
    "403": "The credential lacks the scope or role, or a rule forbids it.",
    "404": "There is no such thing in the caller's organizations.",
    "405": "The address does not answer this method.",
    "406": "None of the media types that `Accept` names is given here.",
    "500": "Something failed inside; nothing was done.",
    "503": "The record cannot be reached; nothing was done.",
}
WRITING = {
    "409": "The object is not in a state that allows this.",
    "411": "The body came without a Content-Length.",
    "413": "The body is larger than 64 KiB.",
    "415": "The body is not JSON.",
    "422": "The request has the expected shape, and does not make sense: `errors` says where.",
}
WRITES = {"post", "put", "patch", "delete"}
FILES = {"409": "The file is not there yet, or failed to be made.", "410": "The file is gone."}


ORGANIZATION = OpenApiParameter(
    "org_id",
    {"type": "string", "format": "uuid"},
    description="Means this organization alone: one of yours, or, with `orchestrator:admin`, any.",
)


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "governance.people.api.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "A Holdpoint API key (`hp_…`)."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "governance.people.api.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


class HoldpointAutoSchema(AutoSchema):
    """Operations are named by their views, tags are the first part of the path, and every list is a page."""

    view: Any  # one of ours, with what `ApiView` declares

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/v1/").split("/")[0]]

    def get_override_parameters(self) -> list[Any]:
        return [*super().get_override_parameters(), ORGANIZATION]

    def _get_paginator(self) -> Any:
        """Our views page by hand (`ApiView.page`), so drf-spectacular cannot find the paginator by itself."""
        return None if self.view.plain_list else api_settings.DEFAULT_PAGINATION_CLASS()  # type: ignore[operator, misc]

    def _get_pagination_parameters(self) -> list[Any]:
        return [] if self.view.one_page else list(super()._get_pagination_parameters())

    def get_auth(self) -> list[dict[str, list[str]]]:
        """What `ScopeRequired` requires: the scopes of a key, of which one is enough, and whether a person may call
        it."""
        scope, view = self.view.required_scopes[self.method], self.view
        others = getattr(view, "other_scopes", {}).get(self.method, ())
        scopes = [scope, *([others] if isinstance(others, str) else others)]
        ways: list[dict[str, list[str]]] = []
        if view.services_allowed:
            ways += [{"apiKey": [str(one)]} for one in dict.fromkeys(scopes)]
        if view.people_permissions.get(self.method) or PERMISSION_FOR_SCOPE.get(scope):
            ways.append({"session": []})
        return ways

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        """Adds two things that drf-spectacular leaves out: a JSON field refuses null unless it allows it, and an amount
        of zero or more has no sign."""
        schema = super()._map_serializer_field(field, direction, bypass_extensions)
        anything = isinstance(field, JSONField) and direction == "request" and not field.allow_null
        unsigned = isinstance(field, DecimalField) and field.min_value is not None and field.min_value >= 0
        if unsigned and "pattern" in schema:
            schema = schema | {"pattern": schema["pattern"].replace("-?", "", 1)}
        return schema | ({"type": ["object", "array", "string", "number", "boolean"]} if anything else {})

    def _get_request_for_media_type(self, serializer: Any, direction: str = "request") -> Any:
        """If a body needs one field or another, the body is required although neither field is."""
        schema, required = super()._get_request_for_media_type(serializer, direction)
        return schema, required or bool(getattr(serializer, "schema_rules", {}))

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        """Says that a body with an unknown field is refused."""
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)
        closed = getattr(serializer, "refuses_unknown", False) and direction == "request"
        rules = getattr(serializer, "schema_rules", {}) if closed else {}
        return schema | ({"additionalProperties": False} if closed else {}) | rules


def document_problem_responses(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular's postprocessing hook: adds the Problem schema and refers to it from each operation."""
    result["components"].setdefault("schemas", {})["Problem"] = _problem_schema()
    content = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    _drop(
        result, "x-spec-enum-id"
    )  # an internal mark of drf-spectacular; its enum hook, which we do not use, would remove it
    for operations in result["paths"].values():
        for method, operation in operations.items():
            refusals = COMMON | (WRITING if method in WRITES else {}) | (FILES if _is_file(operation) else {})
            for status, description in refusals.items():
                operation["responses"].setdefault(status, {"description": description, "content": content})
    return result


def _is_file(operation: dict[str, Any]) -> bool:
    return "application/zip" in operation["responses"].get("200", {}).get("content", {})


def _drop(node: Any, key: str) -> None:
    if isinstance(node, dict):
        node.pop(key, None)
        if {} in node.get("oneOf", ()):  # `oneOf` with "anything": null would match both branches, and so neither
            node.pop("oneOf")
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _drop(child, key)


def _problem_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "RFC 9457. `type` resolves to a help page. Submitted values are never repeated.",
        "required": ["type", "title", "status", "detail", "instance"],
        "properties": {
            "type": {"type": "string", "format": "uri"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "instance": {"type": "string"},
            "reason_code": {"type": "string"},
            "errors": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["pointer", "message"],
                    "properties": {
                        "pointer": {"type": "string", "description": "JSON pointer into the request."},
                        "message": {"type": "string"},
                        "rule": {"type": "string"},
                        "suggestion": {"type": "string", "description": "The nearest valid name, where there is one."},
                        "remedy": {"type": "string", "description": "What can be done about it, and who can."},
                    },
                },
            },
        },
        "examples": [
            {
                "type": f"https://holdpoint.example/problems/{code}",
                "title": problem.title,
                "status": problem.status,
                "detail": problem.summary(),
                "instance": "urn:holdpoint:request:0199a1c2",
            }
            for code, problem in list(known_problems().items())[:1]
        ],
    }
