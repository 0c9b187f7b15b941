"""People, how they get and prove their sign-in, service accounts and API keys. What people may do in an organization
comes from object permissions on it. Two flags on the user remain: `is_staff` opens the console, `is_superuser` makes an
administrator of the installation."""

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import SLUG, Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class User(AbstractUser):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    time_zone = models.CharField(max_length=64, default="UTC", help_text="For the deadlines shown to this person.")

    class Meta:
        ordering = ["username"]
        verbose_name = "person"
        verbose_name_plural = "people"


class PersonReference(models.Model):
    """The only link from a person to the commitment that names them in the ledger.

    Deleting this row with its salt makes the person unknown there. Entries and proofs stay valid.
    """

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="reference", primary_key=True)
    salt = models.BinaryField(max_length=32)
    commitment = models.CharField(max_length=64, unique=True)

    class Meta:
        verbose_name = "person reference"

    def __str__(self) -> str:
        return self.commitment


class Passkey(models.Model):
    """A passkey that may sign votes. Its public key is in the ledger entry of its registration, and only there: whoever
    changes this row changes no key.

    It is usable while allauth's authenticator, which it follows, exists.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="passkeys")
    authenticator = models.OneToOneField("mfa.Authenticator", null=True, on_delete=models.SET_NULL, related_name="+")
    registered_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True)
    sign_count = models.BigIntegerField(default=0, help_text="The authenticator's counter at its last signature.")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(removed_at=None) | Q(authenticator=None), name="passkey_removed_has_no_authenticator"
            ),
        ]

    def __str__(self) -> str:
        return f"passkey of {self.registered_at:%Y-%m-%d}"


class FoundingEnd(AppendOnlyModel):
    """From this moment two people of the organization can confirm for each other, and nobody acts alone any more.
    Append-only, so that the founding cannot begin again when people leave."""

    organization = models.OneToOneField(
        Organization, on_delete=models.PROTECT, related_name="founding_end", primary_key=True
    )
    ended_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        verbose_name = "end of a founding"

    def __str__(self) -> str:
        return str(self.organization_id)


class ServiceAccount(models.Model):
    class Status(models.TextChoices):
        ACTIVE = "active"
        SUSPENDED = "suspended"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="service_accounts")
    slug = models.CharField(max_length=63)
    description = models.CharField(max_length=280, blank=True)
    responsible = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        # A person who answers for an account is deactivated, never deleted: the account would be nobody's.
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The person behind this account: what it does counts as theirs, and they may not release it.",
    )
    internal = models.BooleanField(
        default=False, editable=False, help_text="A part of Holdpoint itself. It has no key and no responsible person."
    )
    module = models.CharField(
        max_length=30, blank=True, help_text="Slug of the registered module that it is bound to; empty: to none."
    )
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.ACTIVE)
    suspended_reason_code = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TenantManager()

    class Meta:
        ordering = ["organization_id", "slug"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug"], name="service_account_once_per_organization"),
            models.CheckConstraint(condition=Q(slug__regex=SLUG), name="service_account_slug_format"),
            models.CheckConstraint(
                condition=Q(status="active", suspended_reason_code="")
                | (Q(status="suspended") & ~Q(suspended_reason_code="")),
                name="service_account_suspended_for_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(internal=True) | Q(responsible__isnull=False) | Q(status="suspended"),
                name="service_account_has_a_responsible_person",
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class ApiKey(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    service_account = models.ForeignKey(ServiceAccount, on_delete=models.PROTECT, related_name="keys")
    # Stored apart from the hash so that a key can be named in pages and looked up for a stream message's signature.
    prefix = models.CharField(max_length=12, unique=True, help_text="The part of the key that may be shown.")
    # Unique, so that a request finds its key with one index look-up.
    sha256 = models.BinaryField(max_length=32, unique=True)
    stream_key = models.BinaryField(
        max_length=32, null=True, help_text="The public half of the key that signs messages on the streams."
    )
    scopes = ArrayField(models.CharField(max_length=40))
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TenantManager(path="service_account__organization_id")

    class Meta:
        ordering = ["-id"]
        verbose_name = "API key"
        indexes = [models.Index(fields=["expires_at"], condition=Q(revoked_at=None), name="api_key_by_end")]

    def __str__(self) -> str:
        return f"hp_{self.prefix}_…"


class SignInRules(models.Model):
    """What an organization asks of the sign-in of its people, beyond what the installation asks of everybody."""

    organization = models.OneToOneField(
        Organization, on_delete=models.CASCADE, related_name="sign_in_rules", primary_key=True
    )
    second_factor_roles = ArrayField(
        models.CharField(max_length=16), default=list, help_text="Kinds of roles that need a second factor."
    )
    changed_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        verbose_name = "sign-in rules"
        verbose_name_plural = "sign-in rules"

    def __str__(self) -> str:
        return ", ".join(self.second_factor_roles) or "none"


class SignInLink(models.Model):
    """A one-time link with which a person chooses how to sign in: an invitation, or a new password.

    Whoever has the link becomes the person. So the row keeps who made it, how it was handed over, to whom it was shown,
    and from where it was used; the person reads all of it on their account page.
    """

    class Purpose(models.TextChoices):
        INVITATION = "invitation"
        PASSWORD_RESET = "password_reset"  # noqa: S105  # a kind of link, no password

    class Delivery(models.TextChoices):
        MAIL = "mail"
        SHOWN = "shown"

    class Ending(models.TextChoices):
        USED = "used"
        WITHDRAWN = "withdrawn"
        REPLACED = "replaced"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_in_links")
    purpose = models.CharField(max_length=16, choices=Purpose.choices)
    delivery = models.CharField(max_length=8, choices=Delivery.choices)
    # Empty until the mail is about to be sent: the clear text is made then, and never stored or queued.
    token_sha256 = models.BinaryField(max_length=32, null=True, unique=True)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    shown_to = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    expires_at = models.DateTimeField()
    mailed_at = models.DateTimeField(null=True)
    mail_tries = models.PositiveSmallIntegerField(default=0)
    mail_due_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    ended_how = models.CharField(max_length=10, choices=Ending.choices, blank=True)
    used_from = models.GenericIPAddressField(null=True)
    used_browser = models.CharField(max_length=200, blank=True)
    used_beside = models.BooleanField(
        default=False, help_text="Used from an address where the person whom it was shown to was signed in."
    )

    class Meta:
        ordering = ["-id"]
        verbose_name = "one-time link"
        indexes = [
            models.Index(fields=["user", "-id"], name="sign_in_link_by_person"),
            models.Index(fields=["mail_due_at"], condition=Q(mail_due_at__isnull=False), name="sign_in_link_mail_due"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "purpose"], condition=Q(ended_at__isnull=True), name="sign_in_link_one_open_per_purpose"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, ended_how="") | (Q(ended_at__isnull=False) & ~Q(ended_how="")),
                name="sign_in_link_ended_in_one_way",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.delivery}"


class PasswordResetRequest(models.Model):
    """Somebody typed a name on the page "new password". A worker looks the name up, so that the page answers known and
    unknown names alike. What was typed is encrypted, and removed when it was looked up."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    typed_sealed = models.TextField(blank=True)
    source_hash = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["source_hash", "at"], name="password_reset_by_source"),
            models.Index(fields=["id"], condition=~Q(typed_sealed=""), name="password_reset_waiting"),
        ]

    def __str__(self) -> str:
        return str(self.id)
