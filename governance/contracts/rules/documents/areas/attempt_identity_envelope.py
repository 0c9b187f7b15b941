"""Which of the ten envelope fields an attempt must have, and the shape of those that the caller sends."""

from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.schema_parts import array, choice, closed_object, document, integer

ENVELOPE_FIELDS = (
    "workflow_slug",
    "contract_version",
    "request_trace_id",
    "idempotency_key",
    "tenant_ref",
    "caller_ref",
    "patient_context_ref",
    "review_owner",
    "runtime_mode",
    "audit_event_link",
)
# Holdpoint itself fills these in, from the URL, the credential, the trace, the contract and the ledger. Without them an
# attempt could not be attributed to anyone; and to leave one out would change nothing.
FIELDS_NEVER_OPTIONAL = (
    "workflow_slug",
    "contract_version",
    "request_trace_id",
    "tenant_ref",
    "caller_ref",
    "review_owner",
    "runtime_mode",
    "audit_event_link",
)
# Two fields are the caller's to send. Of these the key is required by default, because without it nothing is recognised
# as a repetition; whether an action is about a patient is for the contract's owner to say.
FIELDS_REQUIRED_BY_DEFAULT = tuple(name for name in ENVELOPE_FIELDS if name != "patient_context_ref")
PATIENT_CONTEXT = ("applicable", "not_applicable")
RUNTIME_MODES = ("active", "client_driven", "shadow")
SIGNATURES = ("none", "passkey")
# None of these allows a space or an `@`, so that a name, a sentence or a mail address is not a reference. Use
# fullmatch.
REFERENCE_FORMATS = {
    "opaque_ref": r"[A-Za-z0-9][A-Za-z0-9._:/~-]*",
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "ulid": r"[0-7][0-9A-HJKMNP-TV-Z]{25}",
    "urn": r"urn:[a-z0-9][a-z0-9-]{0,30}[a-z0-9]:[A-Za-z0-9._:/~-]+",
    "slug": r"[a-z][a-z0-9]*([-_][a-z0-9]+)*",
}
_TITLE = "Attempt identity envelope"


def _reference(what: str) -> dict[str, object]:
    return closed_object(
        description=f"Shape of {what}.",
        fields={
            "format": choice(description="Named format the whole value must match.", options=tuple(REFERENCE_FORMATS)),
            "max_length": integer(description="Longest accepted value, in characters.", minimum=1, maximum=256),
        },
    )


AREA = Area(
    name="attempt_identity_envelope",
    owner_group="trust-infrastructure",
    title=_TITLE,
    description=(
        "Decides what must be known about an attempt before it can exist: which of the ten identity fields "
        "are required, what the references that callers send must look like, whether there is a patient context "
        "at all, in which runtime modes the contract may be used, and whether people sign their votes. "
        "An attempt that lacks a required field is denied before anything is decided about it."
    ),
    schema=document(
        title=_TITLE,
        fields={
            "required": array(
                description="Envelope fields without which an attempt is denied.",
                items=choice(description="Name of an envelope field.", options=ENVELOPE_FIELDS),
                min_items=len(FIELDS_NEVER_OPTIONAL),
                max_items=len(ENVELOPE_FIELDS),
            ),
            "formats": closed_object(
                description=(
                    "Shape of the references that the caller supplies. The key's shape is in idempotency_key_policy."
                ),
                fields={
                    "request_trace_id": _reference("the request trace id"),
                    "patient_context_ref": _reference("the reference to the patient-context authorization"),
                },
            ),
            "runtime_modes": array(
                description="Runtime modes in which this contract accepts attempts.",
                items=choice(description="Runtime mode.", options=RUNTIME_MODES),
                min_items=1,
                max_items=len(RUNTIME_MODES),
            ),
        },
        # Left out, the installation decides by the risk tier when the contract opens: no default here could be right
        # for both a trial and production.
        optional={
            "signature": choice(
                description="How people sign their votes on held attempts.",
                options=SIGNATURES,
            ),
            # Left out means applicable, which is what documents from before this field say.
            "patient_context": choice(
                description="Whether actions under this contract can be about a patient.",
                options=PATIENT_CONTEXT,
            ),
        },
    ),
    default={
        "required": list(FIELDS_REQUIRED_BY_DEFAULT),
        "formats": {
            "request_trace_id": {"format": "opaque_ref", "max_length": 128},
            "patient_context_ref": {"format": "opaque_ref", "max_length": 128},
        },
        "runtime_modes": list(RUNTIME_MODES),
    },
)
