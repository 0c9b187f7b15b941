"""Kinds of identity providers, and how a person came to one."""

from enum import StrEnum


class ProviderKind(StrEnum):
    OIDC = "oidc"
    SAML = "saml"


class Origin(StrEnum):
    """How a person and a subject at the provider came together. Only `linked` people existed before."""

    SCIM = "scim"
    SIGN_IN = "sign_in"
    LINKED = "linked"
