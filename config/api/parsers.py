"""DRF's parser for JSON, with our limits. A body whose Content-Length is too large is not read at all."""

from typing import Any

from rest_framework.parsers import BaseParser

from reasoncodes.base.json_body import BODY_LIMIT_BYTES, JSON_DEPTH_LIMIT, check_depth, check_length, parse_json

__all__ = ["LimitedJsonParser", "check_depth", "parse_json"]


class LimitedJsonParser(BaseParser):
    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        check_length(parser_context["request"].META)
        # One byte more than allowed: so parse_json sees that there is more, and memory stays bounded.
        limit = getattr(parser_context["view"], "json_depth", JSON_DEPTH_LIMIT)
        return parse_json(stream.read(BODY_LIMIT_BYTES + 1), depth_limit=limit)
