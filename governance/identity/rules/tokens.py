"""The form of a SCIM token: `hps_<prefix>_<secret>`. Its hash is stored, as with API keys."""

from secrets import token_hex, token_urlsafe


def scim_token_generate() -> tuple[str, str]:
    """(the prefix, which may be shown; the whole token)."""
    prefix = token_hex(5)
    return prefix, f"hps_{prefix}_{token_urlsafe(32)}"
