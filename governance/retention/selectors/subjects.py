"""People as subjects of erasure, and governance's tables in an export."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Max, Q

from governance.authority.models import AuthorityChange
from governance.authorship.models import Authorship
from governance.boundary.models import Note
from governance.contracts.models import Contract, ContractDocument, ReadinessDecision
from governance.evidence.models import EvidenceBundle
from governance.identity.models import IdentityProvider, ProviderGroup, ProviderPerson
from governance.ledger.models import LedgerEntry
from governance.people.models import ApiKey, FoundingEnd, PersonReference, ServiceAccount, SignInRules, User
from governance.policies.models import Policy
from governance.regions.rules import years_later
from governance.retention.hooks import ExportTable, SubjectKind
from governance.retention.models import (
    ContextReference,
    DeletionRequest,
    ErasureItem,
    ErasureOrder,
    ExportRequest,
    LegalHold,
)
from governance.retention.rules import RetentionSubject
from governance.retention.selectors.retention import terms_for
from governance.sealing.models import ReadAccess
from governance.shutdown.models import Shutdown
from governance.tenancy.models import Organization, Product, ReviewerTier, RoleGroup
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.models import ReasonCode


def person_organizations(*, user: User) -> set[UUID]:
    """The organizations where the person has a role, acted, or had access until it was ended, and the one whose
    identity provider brought them."""
    # In all organizations: a person acts in several, and the caller's scope may be one of them.
    with every_tenant():
        known = PersonReference.objects.filter(user=user).first()
        roles = RoleGroup.objects.filter(group__user=user).values_list("organization_id", flat=True)
        acted = LedgerEntry.objects.filter(actor_ref=known.commitment) if known else LedgerEntry.objects.none()
        left = LedgerEntry.objects.filter(subject_type="person", subject_id=user.id)
        places = (acted | left).exclude(organization=None).order_by().values_list("organization_id", flat=True)
        brought = ProviderPerson.objects.filter(user=user).values_list("provider__organization_id", flat=True)
        return {one for one in {*roles, *places.distinct(), *brought} if one is not None}


def person_subject(*, user: User) -> RetentionSubject | None:
    """The person as a subject of erasure; None without a reference, because nothing is left to erase."""
    # Retention is the longest of all organizations where the person acted, counted from the last act.
    with every_tenant():
        known = PersonReference.objects.filter(user=user).first()
        if known is None:
            return None
        places = Organization.objects.filter(id__in=person_organizations(user=user))
        years = max((terms_for(organization=one).terms.retention_years for one in places), default=0)
        acted = LedgerEntry.objects.filter(actor_ref=known.commitment).aggregate(last=Max("at"))["last"]
    last = acted or user.date_joined
    return RetentionSubject(
        kind="person",
        id=user.id,
        created_at=last,
        last_activity_at=last,
        retention_until=years_later(last, years=years),
        finished=not user.is_active,
        unresolved=False,
        references=frozenset({known.commitment}),
    )


def _due(organization_id: UUID, at: datetime, after: UUID, limit: int) -> list[RetentionSubject]:
    return []  # people are erased by a deletion request only, not by a purge


def _about(organization_id: UUID, reference: str) -> list[RetentionSubject]:
    return []


def _get(organization_id: UUID, row_id: UUID) -> RetentionSubject | None:
    user = User.objects.filter(id=row_id).first()
    return person_subject(user=user) if user else None


PERSON = SubjectKind(
    name="person",
    title="People",
    door="governance_erase_person",
    due=_due,
    about=_about,
    get=_get,
    unstamped=lambda organization_id, limit: 0,
)


class Committed:
    """A condition for tables that name a context reference by its commitment."""

    def __init__(self, field: str) -> None:
        self.field = field

    def __call__(self, organization_id: UUID, reference: str) -> Q:
        known = ContextReference.objects.filter(organization_id=organization_id, reference=reference)
        return Q(**{f"{self.field}__in": known.values("commitment")})


def governance_export_tables() -> Iterable[ExportTable]:
    # `without` leaves secrets out: hashes of keys, salts, and places in the storage.
    through = "contract__organization_id"
    return [
        ExportTable(Organization, "id"),
        ExportTable(Product),
        ExportTable(ReviewerTier),
        ExportTable(RoleGroup),
        ExportTable(SignInRules),
        ExportTable(IdentityProvider, without=frozenset({"secret_sealed", "scim_sha256"})),
        ExportTable(ProviderPerson, "provider__organization_id"),
        ExportTable(ProviderGroup, "provider__organization_id"),
        ExportTable(ServiceAccount),
        ExportTable(ApiKey, "service_account__organization_id", without=frozenset({"sha256"})),
        # In `details` are the hashes of keys that wait and sealed secrets; `before` and `after` say the same in words.
        ExportTable(AuthorityChange, without=frozenset({"details"})),
        ExportTable(FoundingEnd),
        ExportTable(Contract),
        ExportTable(ContractDocument, through),
        ExportTable(ReadinessDecision, through),
        ExportTable(Policy),
        ExportTable(Authorship),
        ExportTable(Shutdown),
        ExportTable(Note, without=frozenset({"salt"})),
        ExportTable(GovernanceViolation),
        ExportTable(LegalHold, about=Committed("target")),
        ExportTable(ContextReference, about=lambda o, r: Q(reference=r), without=frozenset({"salt"})),
        ExportTable(ExportRequest, about=Committed("commitment"), without=frozenset({"file"})),
        ExportTable(DeletionRequest, about=Committed("commitment")),
        ExportTable(EvidenceBundle, without=frozenset({"draft", "storage_name"})),
        ExportTable(ReadAccess),
        ExportTable(ErasureOrder),
        ExportTable(ErasureItem),
        ExportTable(ReasonCode),
    ]


# A test fails if a table with an organization is neither exported nor listed here.
LEFT_OUT = {
    "governance.recordfault": "a fault of the record, found by the installation; the ledger has its entry",
    "governance.intakeminute": "counts of the decisions, which are exported",
    "governance.organizationuserobjectpermission": "rights of people; the roles are exported",
    "governance.organizationgroupobjectpermission": "follows from the roles, which are exported",
    "governance.contractuserobjectpermission": "rights of people; the roles are exported",
    "governance.contractgroupobjectpermission": "follows from the roles, which are exported",
}
