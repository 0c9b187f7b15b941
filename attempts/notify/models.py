"""Routes of notifications, chat workspaces and linked accounts, and one row per message. Texts are not stored."""

from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q

from attempts.notify.states import CaseNoticeKind, MailMode, NotificationState, NotifyChannel, NotifyKind, RouteState
from attempts.reviews.models import Review
from governance.people.models import ApiKey
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class ChatWorkspace(models.Model):
    """One Slack workspace with its own Slack app. The URL of callbacks contains this row's id, so that the signing
    secret of one organization cannot sign for another."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    name = models.CharField(max_length=80)
    team_id = models.CharField(max_length=32, help_text="Slack's id of the workspace, such as T024BE7LD.")
    bot_token_sealed = models.TextField()
    signing_secret_sealed = models.TextField()
    state = models.CharField(max_length=8, default=RouteState.ACTIVE.value)
    disabled_reason = models.CharField(max_length=64, blank=True)
    disabled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "team_id"], name="chat_workspace_once"),
            models.CheckConstraint(condition=Q(state__in=list(RouteState)), name="chat_workspace_known_state"),
        ]

    def __str__(self) -> str:
        return self.name


class ChatIdentity(models.Model):
    """A chat account that a signed-in person has proved to be theirs."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(ChatWorkspace, on_delete=models.CASCADE, related_name="identities", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    chat_user = models.CharField(max_length=32, help_text="The chat's id of the account.")
    linked_at = models.DateTimeField()

    objects = TenantManager(path="workspace__organization_id")

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "chat identities"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "chat_user"], name="chat_account_of_one_person"),
            models.UniqueConstraint(fields=["workspace", "user"], name="chat_one_account_per_person"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.workspace}"

    @property
    def organization_id(self) -> UUID:
        return self.workspace.organization_id


class ChatLinkCode(models.Model):
    """A one-time code that a signed-in person types in the chat. Only its hash is stored."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(ChatWorkspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    sha256 = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()

    objects = TenantManager(path="workspace__organization_id")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="chat_one_code_per_person")]

    def __str__(self) -> str:
        return f"code of {self.user_id}"


class ChatCallback(models.Model):
    """The hash of an accepted callback's signature, kept for as long as its timestamp would be accepted."""

    signature_sha256 = models.CharField(max_length=64, primary_key=True)
    received_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.signature_sha256


class NotificationRoute(models.Model):
    """Where reviews of a contract and a tier (empty: of all) are announced: a chat channel, or reviewers by mail."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    channel = models.CharField(max_length=8)
    contract_slug = models.CharField(max_length=63, blank=True)
    tier = models.CharField(max_length=63, blank=True)
    workspace = models.ForeignKey(ChatWorkspace, null=True, on_delete=models.PROTECT, related_name="routes")
    chat_channel = models.CharField(max_length=32, blank=True, help_text="The chat's id of the channel.")
    digest_minutes = models.PositiveSmallIntegerField(default=0, help_text="0: a mail for each review, at once.")
    state = models.CharField(max_length=8, default=RouteState.ACTIVE.value)
    disabled_reason = models.CharField(max_length=64, blank=True)
    disabled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(RouteState)), name="route_known_state"),
            models.CheckConstraint(
                condition=(Q(channel="slack", workspace__isnull=False, digest_minutes=0) & ~Q(chat_channel=""))
                | Q(channel="email", workspace=None, chat_channel=""),
                name="route_fits_its_channel",
            ),
            models.UniqueConstraint(
                fields=["organization", "channel", "contract_slug", "tier", "workspace", "chat_channel"],
                condition=Q(state="active"),
                nulls_distinct=False,
                name="route_once",
            ),
        ]

    def __str__(self) -> str:
        about = f"{self.contract_slug or 'every contract'}, {self.tier or 'every tier'}"
        return f"{self.channel}: {about}"

    @property
    def target(self) -> str:
        return self.chat_channel if self.channel == NotifyChannel.SLACK else "reviewers"


class Notification(models.Model):
    """One message: review, receiver and tries. `refresh_at`: when its card must be refreshed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="+", db_index=False)
    route = models.ForeignKey(NotificationRoute, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=10)
    recipient = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    digest = models.BooleanField(default=False)
    state = models.CharField(max_length=8, default=NotificationState.PENDING.value)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField()
    leased_until = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=64, blank=True, help_text="A word of ours or the chat's error code.")
    message_ref = models.CharField(max_length=64, blank=True, help_text="The chat's id of the message.")
    refresh_at = models.DateTimeField(null=True)
    refresh_tries = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(NotificationState)), name="notification_known_state"),
            models.CheckConstraint(condition=Q(kind__in=list(NotifyKind)), name="notification_known_kind"),
            # A card has no recipient and a reminder by mail no route: NULL must count as equal to NULL, or the same
            # message could be written twice.
            models.UniqueConstraint(
                fields=["review", "route", "kind", "recipient"], nulls_distinct=False, name="notification_once"
            ),
        ]
        indexes = [
            models.Index(fields=["next_try_at", "id"], condition=Q(state="pending"), name="notification_due"),
            # For fair turns between organizations: attempts/notify/sql.py.
            models.Index(
                fields=["organization", "next_try_at", "id"], condition=Q(state="pending"), name="notification_line"
            ),
            models.Index(
                fields=["refresh_at", "id"], condition=Q(refresh_at__isnull=False), name="notification_refresh"
            ),
            models.Index(
                fields=["route", "leased_until"], condition=Q(leased_until__isnull=False), name="notification_leased"
            ),
            models.Index(
                fields=["route"], condition=Q(state__in=["pending", "stopped"]), name="notification_undelivered"
            ),
            models.Index(fields=["organization", "id"], name="notification_list"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class MailChoice(models.Model):
    """How a person wants mail, and the address that the mail server refused."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+")
    mode = models.CharField(max_length=8, default=MailMode.ROUTE.value)
    refused_address = models.CharField(max_length=254, blank=True)
    refused_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(mode__in=list(MailMode)), name="mail_known_mode")]

    def __str__(self) -> str:
        return self.mode


class KeyEndNotice(models.Model):
    """That an API key ends within so many days: written once, then sent to its people."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    days = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["api_key", "days"], name="key_end_told_once")]
        indexes = [models.Index(fields=["id"], condition=Q(sent_at=None), name="key_end_unsent")]

    def __str__(self) -> str:
        return f"{self.days} days"


class CaseNotice(models.Model):
    """That a quarantine case was opened or escalated. The row without a receiver is written with the case; it becomes
    one row for each receiver, a person or a chat route. Nothing more is tried once `next_try_at` is empty."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    case = models.ForeignKey("attempts.QuarantineCase", on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=10)
    route = models.ForeignKey(NotificationRoute, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    recipient = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=64, blank=True, help_text="A word of ours or the chat's error code.")
    created_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=list(CaseNoticeKind)), name="case_notice_known_kind"),
            models.CheckConstraint(condition=Q(route=None) | Q(recipient=None), name="case_notice_one_receiver"),
            models.UniqueConstraint(
                fields=["case", "kind", "route", "recipient"], nulls_distinct=False, name="case_notice_once"
            ),
        ]
        indexes = [
            models.Index(fields=["next_try_at", "id"], condition=Q(next_try_at__isnull=False), name="case_notice_due")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.case_id}"


class HoldsNotice(models.Model):
    """That an organization's open holds have nearly reached their cap: once a day, then sent to its people."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    day = models.DateField()
    count = models.PositiveIntegerField()
    cap = models.PositiveIntegerField()
    oldest_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["organization", "day"], name="holds_told_once_a_day")]
        indexes = [models.Index(fields=["id"], condition=Q(sent_at=None), name="holds_notice_unsent")]

    def __str__(self) -> str:
        return f"{self.count} of {self.cap}"
