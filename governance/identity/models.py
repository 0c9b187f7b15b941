"""Identity providers of organizations, the people that each of them may sign in, and its groups.

Rows are never deleted: a name that could be used again would lead to another organization's people.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from governance.identity.states import Origin, ProviderKind
from governance.people.models import User
from governance.tenancy.models import SLUG, Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class IdentityProvider(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="identity_providers")
    slug = models.CharField(max_length=63, unique=True, help_text="Part of its addresses. It cannot be changed.")
    kind = models.CharField(max_length=8, choices=[(one.value, one.value) for one in ProviderKind])
    active = models.BooleanField(default=True)
    issuer = models.CharField(max_length=255, help_text="OIDC: the issuer's address. SAML: the entity id.")
    client_id = models.CharField(max_length=191, blank=True)
    secret_sealed = models.TextField(blank=True)
    sso_url = models.CharField(max_length=255, blank=True, help_text="SAML: where people are sent to sign in.")
    certificate = models.TextField(blank=True, help_text="SAML: the certificate that signs assertions.")
    subject_claim = models.CharField(
        max_length=120, blank=True, help_text="The claim that names a person for ever. Empty: `sub`, or the NameID."
    )
    roles_claim = models.CharField(max_length=120, default="groups")
    mapping = models.JSONField(default=dict, help_text="Value of the claim or name of the group to a list of roles.")
    create_on_first_sign_in = models.BooleanField(
        default=False, help_text="Somebody unknown with a mapped role gets an account. Otherwise only SCIM makes them."
    )
    required = models.BooleanField(default=False, help_text="People of the organization cannot use a password.")
    scim_prefix = models.CharField(max_length=12, blank=True, help_text="The part of the SCIM token that may be shown.")
    scim_sha256 = models.BinaryField(max_length=32, null=True, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["organization_id", "slug"]
        verbose_name = "identity provider"
        constraints = [
            models.CheckConstraint(condition=Q(slug__regex=SLUG), name="identity_provider_slug_format"),
            models.CheckConstraint(condition=Q(kind__in=list(ProviderKind)), name="identity_provider_known_kind"),
            models.CheckConstraint(
                condition=Q(active=True) | Q(required=False, scim_sha256=None), name="identity_provider_off_is_off"
            ),
            # Two would let the weaker one sign in whom the other one has removed.
            models.UniqueConstraint(
                fields=["organization"], condition=Q(active=True), name="identity_provider_one_active"
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class ProviderPerson(models.Model):
    """Who signs in by a provider: its subject and our person. Found by the subject, never by a mail address."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    provider = models.ForeignKey(IdentityProvider, on_delete=models.PROTECT, related_name="people")
    # One provider per person: otherwise the second one would decide about roles that the first one gave.
    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="provider_person")
    subject = models.CharField(max_length=191)
    user_name = models.CharField(max_length=120, help_text="The name at the provider.")
    external_id = models.CharField(max_length=191, blank=True)
    origin = models.CharField(max_length=8, choices=[(one.value, one.value) for one in Origin])
    active = models.BooleanField(default=True, help_text="What the provider says. An operator can end access as well.")
    roles = ArrayField(
        models.CharField(max_length=64), default=list, help_text="Roles that the mapping gave. Others are not touched."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField()

    objects = TenantManager(path="provider__organization_id")

    class Meta:
        ordering = ["id"]
        verbose_name = "person of a provider"
        verbose_name_plural = "people of providers"
        constraints = [
            models.UniqueConstraint(fields=["provider", "subject"], name="provider_person_one_per_subject"),
            models.UniqueConstraint(fields=["provider", "user_name"], name="provider_person_one_per_name"),
            models.CheckConstraint(condition=~Q(subject=""), name="provider_person_has_a_subject"),
        ]
        indexes = [
            models.Index(fields=["provider", "external_id"], name="provider_person_external"),
            models.Index(fields=["provider", "id"], name="provider_person_list"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class ProviderGroup(models.Model):
    """A group that a provider sent by SCIM. Its name is looked up in the mapping."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    provider = models.ForeignKey(IdentityProvider, on_delete=models.PROTECT, related_name="groups")
    name = models.CharField(max_length=191)
    external_id = models.CharField(max_length=191, blank=True)
    members = models.ManyToManyField(ProviderPerson, related_name="groups")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField()

    objects = TenantManager(path="provider__organization_id")

    class Meta:
        ordering = ["id"]
        verbose_name = "group of a provider"
        constraints = [models.UniqueConstraint(fields=["provider", "name"], name="provider_group_one_per_name")]
        indexes = [models.Index(fields=["provider", "id"], name="provider_group_list")]

    def __str__(self) -> str:
        return str(self.id)
