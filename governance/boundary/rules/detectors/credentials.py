"""Detectors of secrets: private keys, bearer credentials, vendor tokens, and random values under secret-like keys."""

import math
import re
from collections import Counter

from governance.boundary.rules.detectors.subject import InspectedText, mentions

# Patterns start at a token boundary. Otherwise a long token would be scanned again from each of its characters.
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|PuTTY-User-Key-File-[0-9]")
_BEARER = re.compile(
    r"(?i:\b(?:bearer|basic))\s{1,4}(?=[A-Za-z._~+/=-]{0,64}[0-9A-Z])[A-Za-z0-9._~+/=-]{16}"
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4}"
)
_HOLDPOINT = re.compile(r"(?<![A-Za-z0-9])hp_[A-Za-z0-9_.-]{16,}+")
_VENDOR = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:AKIA|ASIA|AGPA|AROA|AIDA|ANPA)[A-Z0-9]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{20}|github_pat_[A-Za-z0-9_]{20}|glpat-[A-Za-z0-9_-]{16}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10}|xapp-[A-Za-z0-9-]{10}"
    r"|[rsp]k_(?:live|test)_[A-Za-z0-9]{10}|whsec_[A-Za-z0-9+/=]{16}"
    r"|AIza[0-9A-Za-z_-]{30}|ya29\.[0-9A-Za-z_-]{16}|hv[sb]\.[A-Za-z0-9_-]{20}"
    r"|npm_[A-Za-z0-9]{30}|pypi-[A-Za-z0-9_-]{30}|hf_[A-Za-z0-9]{30}|dop_v1_[a-f0-9]{30}"
    r"|SG\.[A-Za-z0-9_-]{16}\.|AGE-SECRET-KEY-1"
    r")"
)
_SK = re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{20,}+")
_ASSIGNED = re.compile(
    r"(?i:(?:password|passwd|pwd|secret|api[_-]?key|access[_-]?token|accountkey|x-amz-signature|x-amz-credential))"
    r"[\"']?\s{0,3}[=:]\s{0,3}[^\s&;,]{4}"
)
_URL_LOGIN = re.compile(r"://[^/\s:@]{0,64}:[^/\s@]{1,128}@")
_PLAIN_HASH = re.compile(r"(?:sha256:)?(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})")
_TOKEN = re.compile(r"[\x21-\x7e]{12,}")


def entropy(text: str) -> float:
    """Bits per character."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())


def private_key(subject: InspectedText) -> bool:
    text = subject.text
    return ("-----BEGIN" in text or "PuTTY" in text) and _PRIVATE_KEY.search(text) is not None


def bearer_token(subject: InspectedText) -> bool:
    """Authorization headers, JWTs, and Holdpoint's own keys."""
    text = subject.text
    if ("eyJ" in text or mentions(text, ("bearer", "basic"))) and _BEARER.search(text):
        return True
    return "hp_" in text and any(_random(match[0]) for match in _HOLDPOINT.finditer(text))


def secret_token(subject: InspectedText) -> bool:
    text = subject.text
    if "secret" in subject.hints and _TOKEN.fullmatch(text) and not _PLAIN_HASH.fullmatch(text):
        return entropy(text) >= 3.0
    if _VENDOR.search(text) or ("sk-" in text and any(_random(match[0]) for match in _SK.finditer(text))):
        return True
    if ("=" in text or ":" in text) and _ASSIGNED.search(text):
        return True
    return "@" in text and _URL_LOGIN.search(text) is not None


def _random(token: str) -> bool:
    """Whether it looks like a key and not like `hp_contract_approval_flow`: keys mix letters with digits, or cases."""
    body = token[3:]
    return any(char.isdigit() for char in body) or (body != body.lower() and body != body.upper())
