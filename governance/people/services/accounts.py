"""Service accounts (create, name who is responsible, suspend, reinstate) and their API keys (issue, rotate, revoke,
note their use)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from governance.boundary.services import handle_check, text_check
from governance.enforcement.sql import key_has_ended, key_not_ended, send_lock_exclude
from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_append, person_commitment
from governance.people.configured import api_key_life
from governance.people.errors import KeyLimitReached, ResponsiblePersonMissing
from governance.people.models import ApiKey, ServiceAccount, User
from governance.people.rules.keys import KeyMaterial, key_generate, key_material
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import may_answer_for
from governance.tenancy.models import Organization
from governance.throttles.services import strikes_forget
from reasoncodes.base.actors import SYSTEM, Actor, ActorKind
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, NotFound, Refused, WrongState
from reasoncodes.base.tenancy import every_tenant

NO_RESPONSIBLE = "responsible_missing"
# Names of Holdpoint's own accounts. Whoever had one of them would act as that part of Holdpoint.
RESERVED_SLUGS = frozenset({"workflow-engine"})


def service_account_create(
    *,
    actor: Actor,
    at: datetime,
    organization: Organization,
    slug: str,
    responsible: User,
    description: str = "",
) -> ServiceAccount:
    """What the account does counts as done by the responsible person, in every rule that keeps two people apart."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    if slug in RESERVED_SLUGS:
        raise InvalidInput(errors=[FieldError("/slug", "is the name of a part of Holdpoint itself")])
    _require_may_answer(responsible, organization.id)
    handle_check(handle=slug, pointer="/slug")
    text_check(text=description, pointer="/description")
    account = ServiceAccount(organization=organization, slug=slug, description=description, responsible=responsible)
    return _insert_account(account, actor=actor, at=at)


def service_account_ensure(*, at: datetime, organization: Organization, slug: str, description: str) -> ServiceAccount:
    """The account with which a part of Holdpoint itself acts in this organization; created at its first use. Nobody is
    responsible for it, it has no key, and no entry point can make one like it."""
    own = ServiceAccount.objects.filter(organization=organization, slug=slug)
    try:
        return own.first() or _insert_account(
            ServiceAccount(organization=organization, slug=slug, description=description, internal=True),
            actor=SYSTEM,
            at=at,
        )
    except AlreadyExists:  # another transaction created it after our look-up
        return own.get()


def _insert_account(account: ServiceAccount, *, actor: Actor, at: datetime) -> ServiceAccount:
    try:
        with transaction.atomic():
            account.save(force_insert=True)
            _record(account, "service_account.created", actor=actor, at=at)
    # The unique constraint decides: a look-up before the insert would lose the race against a second request.
    except IntegrityError as error:
        raise AlreadyExists("This organization has a service account with this slug.") from error
    return account


def service_account_responsible_name(
    *, actor: Actor, at: datetime, service_account_id: UUID, responsible: User
) -> ServiceAccount:
    """From now on what the account does counts as this person's. A suspended account stays suspended."""
    with transaction.atomic():
        account = _lock(actor, service_account_id)
        if account.internal:
            raise WrongState("This account is a part of Holdpoint itself: nobody is responsible for it.")
        _require_may_answer(responsible, account.organization_id)
        if account.responsible_id != responsible.id:
            account.responsible = responsible
            account.save(update_fields=["responsible"])
            _record(account, "service_account.responsible_named", actor=actor, at=at)
    return account


def _require_may_answer(responsible: User, organization_id: UUID) -> None:
    if not may_answer_for(user=responsible, organization_id=organization_id):
        message = "must be an active person who has a role in this organization"
        raise InvalidInput(errors=[FieldError("/responsible", message)])


def service_accounts_suspended_record(*, at: datetime) -> int:
    """After a migration that suspended accounts without a responsible person: puts each of them on the ledger, once.
    A migration cannot, because the ledger is written by this version's code only."""
    recorded = LedgerEntry.objects.filter(
        subject_type="service_account", action="service_account.suspended", reason_code=NO_RESPONSIBLE
    )
    with transaction.atomic():
        suspended = ServiceAccount.objects.filter(suspended_reason_code=NO_RESPONSIBLE, responsible=None)
        missing = suspended.exclude(id__in=recorded.values("subject_id"))
        for account in missing:
            _record(account, "service_account.suspended", actor=SYSTEM, at=at, reason_code=NO_RESPONSIBLE)
    return len(missing)


def service_account_suspend(
    *, actor: Actor, at: datetime, service_account_id: UUID, reason_code: str
) -> ServiceAccount:
    """The account's keys are refused from the next request on, and nothing that it asked for is sent any more."""
    with transaction.atomic():
        # First, before any row lock. Waits for intents that are being written; each later one sees the suspension.
        send_lock_exclude()
        account = _lock(actor, service_account_id)
        if account.status != ServiceAccount.Status.SUSPENDED:
            account.status = ServiceAccount.Status.SUSPENDED
            account.suspended_reason_code = reason_code
            account.save(update_fields=["status", "suspended_reason_code"])
            _record(account, "service_account.suspended", actor=actor, at=at, reason_code=reason_code)
    return account


def service_account_reinstate(*, actor: Actor, at: datetime, service_account_id: UUID) -> ServiceAccount:
    """The account's live keys work again."""
    with transaction.atomic():
        account = _lock(actor, service_account_id)
        if account.responsible_id is None and not account.internal:
            raise ResponsiblePersonMissing
        if account.status != ServiceAccount.Status.ACTIVE:
            account.status = ServiceAccount.Status.ACTIVE
            account.suspended_reason_code = ""
            account.save(update_fields=["status", "suspended_reason_code"])
            _record(account, "service_account.reinstated", actor=actor, at=at)
            # With the old strikes the next mistake would suspend it again. After the commit, because the counters are
            # in Valkey and a rollback would not bring them back.
            transaction.on_commit(lambda: strikes_forget(subject=str(account.id)))
    return account


def _lock(actor: Actor, service_account_id: UUID) -> ServiceAccount:
    # Two operators at once: the second one waits and sees what the first one did. NO KEY, so that inserts of rows that
    # refer to this account do not wait.
    account = ServiceAccount.objects.select_for_update(no_key=True).filter(id=service_account_id).first()
    if account is None or not actor.may_act_in(account.organization_id):
        raise NotFound
    return account


def _record(account: ServiceAccount, action: str, *, actor: Actor, at: datetime, reason_code: str = "") -> None:
    ledger_append(
        action=action,
        organization_id=account.organization_id,
        subject_type="service_account",
        subject_id=account.id,
        actor=actor,
        at=at,
        payload={"slug": account.slug, "responsible": _responsible(account)},
        reason_code=reason_code,
    )


def _responsible(account: ServiceAccount) -> str | None:
    return person_commitment(user_id=account.responsible_id) if account.responsible_id else None


# Two are what a rotation needs. More would stay live, forgotten, after it.
LIVE_KEYS = 2
# Writing the row at every request would cost an UPDATE per call; ten minutes are enough to find unused keys.
LAST_USED_RESOLUTION = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """The row and the clear text, which is shown once and not stored."""

    key: ApiKey
    secret: str


def api_key_issue(
    *,
    actor: Actor,
    at: datetime,
    service_account: ServiceAccount,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
    material: KeyMaterial | None = None,
) -> IssuedKey:
    """A new key. An account has at most two live keys. Without `expires_at` it ends after HOLDPOINT_API_KEY_DAYS. With
    `material` the key was made earlier, when it was proposed."""
    with transaction.atomic():
        account = _lock_account(actor, service_account.id)
        if account.internal:
            raise WrongState("This account is a part of Holdpoint itself and has no key.")
        if _live(service_account.id, at).count() >= LIVE_KEYS:
            raise KeyLimitReached
        return _insert(
            service_account,
            "api_key.issued",
            actor=actor,
            at=at,
            scopes=scopes,
            expires_at=expires_at or at + api_key_life(),
            material=material,
        )


def api_key_rotate(
    *, actor: Actor, at: datetime, key_id: UUID, overlap: timedelta, material: KeyMaterial | None = None
) -> IssuedKey:
    """A successor with the same scopes and a full life of its own. The old key stays valid during the overlap and then
    ends by itself."""
    with transaction.atomic():
        old = _lock_key_account(actor, key_id)
        if key_has_ended(old, at):
            raise WrongState("The key has ended; issue a new one.")
        if _live(old.service_account_id, at).count() >= LIVE_KEYS:
            raise KeyLimitReached
        end = at + overlap
        # A rotation never extends a key that would have ended earlier.
        old.expires_at = min(old.expires_at, end) if old.expires_at else end
        old.save(update_fields=["expires_at"])
        return _insert(
            old.service_account,
            "api_key.rotated",
            actor=actor,
            at=at,
            scopes=old.scopes,
            expires_at=at + api_key_life(),
            replaces=old,
            material=material,
        )


def api_key_revoke(*, actor: Actor, at: datetime, key_id: UUID) -> ApiKey:
    """The key is refused from the next request on."""
    with transaction.atomic():
        key = _lock_key_account(actor, key_id)
        if key.revoked_at is None:
            key.revoked_at = at
            key.save(update_fields=["revoked_at"])
            _record_key(key, "api_key.revoked", actor=actor, at=at)
    return key


def api_key_touch(*, key: ApiKey, at: datetime) -> None:
    """Notes when the key was last used, to ten minutes."""
    if key.last_used_at is None or at - key.last_used_at > LAST_USED_RESOLUTION:
        # Called during authentication, before the request has a tenant scope.
        with every_tenant():
            ApiKey.objects.filter(id=key.id).update(last_used_at=at)


def _live(service_account_id: UUID, at: datetime) -> QuerySet[ApiKey]:
    """Includes keys of a suspended account: they work again when it is reinstated."""
    return ApiKey.objects.filter(key_not_ended(at), service_account_id=service_account_id)


def _lock_account(actor: Actor, service_account_id: UUID) -> ServiceAccount:
    """Lets one issue or rotation per account run at a time. Being able to see an account is not enough to act on it."""
    # Without the lock two requests would both count one live key, and both would add one.
    account = ServiceAccount.objects.select_for_update(no_key=True).filter(id=service_account_id).first()
    if account is None or not actor.may_act_in(account.organization_id):
        raise NotFound
    return account


def _lock_key_account(actor: Actor, key_id: UUID) -> ApiKey:
    key = ApiKey.objects.select_related("service_account").filter(id=key_id).first()
    if key is None:
        raise NotFound
    _lock_account(actor, key.service_account_id)
    # It was read before the lock: a rotation or revocation may have committed while we waited.
    key.refresh_from_db()
    return key


def _may_give(actor: Actor, scopes: list[str]) -> bool:
    """`orchestrator:admin` reaches into every organization, so an organization's own operator cannot give it to a
    key."""
    if ApiScope.ORCHESTRATOR_ADMIN not in scopes or actor.kind is ActorKind.SYSTEM:
        return True
    if actor.kind is ActorKind.PERSON:
        return actor.id is not None and User.objects.filter(id=actor.id, is_superuser=True).exists()
    return ApiScope.ORCHESTRATOR_ADMIN in actor.scopes


def scopes_check(*, actor: Actor, scopes: Iterable[str]) -> list[str]:
    """The scopes in order, if they are known and this actor may give them."""
    chosen = sorted(set(scopes))
    unknown = [scope for scope in chosen if scope not in set(ApiScope)]
    if unknown or not chosen:
        raise InvalidInput(errors=[FieldError("/scopes", "one or more of: " + ", ".join(ApiScope))])
    if not _may_give(actor, chosen):
        raise Refused("Only an administrator of the installation may give orchestrator:admin.")
    return chosen


def _insert(
    account: ServiceAccount,
    action: str,
    *,
    actor: Actor,
    at: datetime,
    scopes: Iterable[str],
    expires_at: datetime,
    replaces: ApiKey | None = None,
    material: KeyMaterial | None = None,
) -> IssuedKey:
    chosen = scopes_check(actor=actor, scopes=scopes)
    secret = "" if material else key_generate()[1]
    made = material or key_material(secret)
    key = ApiKey.objects.create(
        service_account=account,
        prefix=made.prefix,
        sha256=made.sha256,
        stream_key=made.stream_key,
        scopes=chosen,
        expires_at=expires_at,
    )
    _record_key(key, action, actor=actor, at=at, replaces=replaces)
    return IssuedKey(key=key, secret=secret)


def _record_key(key: ApiKey, action: str, *, actor: Actor, at: datetime, replaces: ApiKey | None = None) -> None:
    ledger_append(
        action=action,
        organization_id=key.service_account.organization_id,
        subject_type="api_key",
        subject_id=key.id,
        actor=actor,
        at=at,
        payload={
            "prefix": key.prefix,
            "scopes": key.scopes,
            "expires_at": key.expires_at.isoformat() if key.expires_at else None,
            "replaces": str(replaces.id) if replaces else None,
        },
    )
