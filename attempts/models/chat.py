"""Chat: the workspace of an organization with its sealed secrets, and which account in it belongs to which person."""

from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q

from attempts.states import RouteState
from governance.models import Organization
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager


class ChatWorkspace(models.Model):
    """One Slack workspace with an app of its own. Callbacks name this row's id, so that one organization's signing
    secret can never speak for another's."""

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
    """A person signed in to Holdpoint showed that this chat account is theirs."""

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
    """A code that a signed-in person types in the chat: once, within minutes. Only its hash is kept."""

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
    """A callback that was taken, by the hash of its signature, as long as its timestamp would still be accepted."""

    signature_sha256 = models.CharField(max_length=64, primary_key=True)
    received_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.signature_sha256
