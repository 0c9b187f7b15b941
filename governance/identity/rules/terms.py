"""What is set for a provider of each kind."""

from collections.abc import Mapping
from typing import Any

from governance.identity.states import ProviderKind

TERMS = (
    "issuer",
    "client_id",
    "sso_url",
    "certificate",
    "subject_claim",
    "roles_claim",
    "mapping",
    "create_on_first_sign_in",
    "required",
)
"""The fields that a proposal may name. The client secret comes apart from them, encrypted."""
NEEDED = {ProviderKind.OIDC: ("issuer", "client_id"), ProviderKind.SAML: ("issuer", "sso_url", "certificate")}
LONGEST = {
    "issuer": 255,
    "client_id": 191,
    "sso_url": 255,
    "certificate": 8192,
    "subject_claim": 120,
    "roles_claim": 120,
}
FLAGS = ("create_on_first_sign_in", "required")


def terms_problems(*, kind: str, terms: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pairs of JSON pointer and message."""
    if kind not in list(ProviderKind):
        return [("/kind", "is oidc or saml")]
    if set(terms) - set(TERMS):
        return [("", "the known fields are: " + ", ".join(TERMS))]
    found = [
        (f"/{name}", f"is a text of at most {LONGEST[name]} characters")
        for name in LONGEST
        if name in terms and (not isinstance(terms[name], str) or len(terms[name]) > LONGEST[name])
    ]
    found += [(f"/{name}", "is true or false") for name in FLAGS if not isinstance(terms.get(name, False), bool)]
    found += [(f"/{name}", "is required") for name in NEEDED[ProviderKind(kind)] if not terms.get(name)]
    return found or _address_problems(kind, terms)


def _address_problems(kind: str, terms: Mapping[str, Any]) -> list[tuple[str, str]]:
    """http is for a provider inside the own network; whether it may be reached is decided at each request."""
    name = "issuer" if kind == ProviderKind.OIDC else "sso_url"
    text = terms[name]
    if not text.startswith(("https://", "http://")) or ("?" in text and kind == ProviderKind.OIDC) or "#" in text:
        return [(f"/{name}", "is not an address that begins with https://")]
    return []
