"""The refusal of the metadata boundary."""

from reasoncodes.base.errors import DomainError


class MetadataBoundary(DomainError):
    """The text or metadata contains something that must not enter the record.

    `errors` names the place and the rule, never the value. Remove the value and send again. Keep the content in your
    own system and send a reference to it.
    """

    code = "metadata-boundary"
    status = 422
    title = "Outside the metadata boundary"
    default_reason_code = "metadata_boundary"
