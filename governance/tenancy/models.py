"""Organizations, their products and reviewer tiers, and the groups through which people have roles in them."""

from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager

SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
# `reviewer:` and it are a role, which has 64 characters at most.
TIER = r"^[a-z0-9][a-z0-9_-]{0,53}$"


class Organization(models.Model):
    class Status(models.TextChoices):
        ACTIVE = "active"
        SUSPENDED = "suspended"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.CharField(max_length=63, unique=True)
    name = models.CharField(max_length=120)
    regions = ArrayField(
        models.CharField(max_length=8),
        default=list,
        blank=True,
        help_text="Regions of record, such as US or EU. None: every attempt is denied.",
    )
    capacity_units = models.PositiveIntegerField(
        default=1, validators=[MinValueValidator(1)], help_text="Weight when work is handed out fairly."
    )
    max_concurrency = models.PositiveIntegerField(default=50, help_text="Attempts under way at once.")
    max_open_holds = models.PositiveIntegerField(default=10_000, help_text="Attempts that wait for people at once.")
    max_runs_per_min = models.PositiveIntegerField(default=600)
    max_writes_per_run = models.PositiveIntegerField(default=100)
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.ACTIVE)
    home = models.BooleanField(
        default=False, help_text="Runs the installation: its operators change schedule and witnesses, two at a time."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TenantManager(path="id")

    class Meta:
        ordering = ["slug"]
        permissions = [
            ("operate_organization", "Can operate"),
            ("review_organization", "Can decide reviews"),
            ("audit_organization", "Can read the whole record"),
            ("decide_readiness", "Can decide on readiness areas that their group owns"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(slug__regex=SLUG), name="organization_slug_format"),
            models.CheckConstraint(condition=Q(capacity_units__gte=1), name="organization_capacity_positive"),
            models.CheckConstraint(condition=Q(status__in=["active", "suspended"]), name="organization_known_status"),
            models.UniqueConstraint(fields=["home"], condition=Q(home=True), name="organization_one_home"),
        ]

    def __str__(self) -> str:
        return self.name


# Tables of our own instead of guardian's generic ones: real foreign keys, and permission look-ups that join directly.
class OrganizationUserObjectPermission(UserObjectPermissionBase):
    content_object = models.ForeignKey(Organization, on_delete=models.CASCADE)


class OrganizationGroupObjectPermission(GroupObjectPermissionBase):
    content_object = models.ForeignKey(Organization, on_delete=models.CASCADE)


class Product(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="products")
    slug = models.CharField(max_length=63)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TenantManager()

    class Meta:
        ordering = ["organization_id", "slug"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug"], name="product_slug_once_per_organization"),
            models.CheckConstraint(condition=Q(slug__regex=SLUG), name="product_slug_format"),
        ]

    def __str__(self) -> str:
        return self.name


class ReviewerTier(models.Model):
    """A tier of reviewers that an organization has. It gives nobody anything: a person is in it by the role
    `reviewer:<slug>`, which two people give."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="reviewer_tiers")
    slug = models.CharField(max_length=54, help_text="What policies, definitions and roles name. It never changes.")
    label = models.CharField(max_length=80, help_text="What people see.")
    description = models.CharField(max_length=280, blank=True)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TenantManager()

    class Meta:
        ordering = ["organization_id", "slug"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug"], name="reviewer_tier_once_per_organization"),
            models.CheckConstraint(condition=Q(slug__regex=TIER), name="reviewer_tier_slug_format"),
        ]

    def __str__(self) -> str:
        return self.label


class RoleGroup(models.Model):
    """Having `role` in `organization` means being a member of `group`, which has guardian's permissions on the
    organization."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="role_groups")
    role = models.CharField(max_length=64)
    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="role_group")

    objects = TenantManager()

    class Meta:
        ordering = ["organization_id", "role"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "role"], name="role_group_once_per_organization")
        ]

    def __str__(self) -> str:
        return f"{self.organization_id}/{self.role}"
