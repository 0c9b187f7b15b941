"""Console pages of notification routes, chat workspaces, linked accounts and sent messages."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from attempts.notify.configured import public_url
from attempts.notify.models import ChatIdentity, ChatWorkspace, Notification, NotificationRoute
from attempts.notify.selectors import workspace_choices
from attempts.notify.services.chat_accounts import chat_identity_unlink
from attempts.notify.services.chat_workspace import workspace_connect, workspace_disable, workspace_secrets_replace
from attempts.notify.services.routes import LONGEST_DIGEST, route_create, route_disable, route_enable
from attempts.notify.services.send import AGAIN, notification_resend
from attempts.notify.states import NotificationState, NotifyChannel, NotifyKind, RouteState
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ConsoleForm, ReasonForm
from governance.console.admin.lists import choice_filter
from governance.console.selectors.lists import by_id
from governance.console.selectors.pages import organization_choices

STATE_LABELS = {"active": "success", "disabled": "danger"}
DELIVERY_LABELS = {"sent": "success", "pending": "info", "failed": "danger", "stopped": "warning"}
SECRET = {"autocomplete": "off", "spellcheck": "false"}


class OfOrganization(ConsoleForm):
    organization: Any = forms.ModelChoiceField(queryset=None, empty_label=None, widget=UnfoldAdminSelectWidget)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ids = console_actor(self.request).organization_ids if self.request else ()
        fields: Any = self.fields
        fields["organization"].queryset = organization_choices(ids=ids)


class SecretsForm(forms.Form):
    """The secrets of a workspace. They are entered here and never shown."""

    bot_token = forms.CharField(
        label="Bot token",
        max_length=255,
        widget=UnfoldAdminPasswordWidget(attrs=SECRET),
        help_text="It begins with xoxb-.",
    )
    signing_secret = forms.CharField(
        label="Signing secret",
        max_length=255,
        widget=UnfoldAdminPasswordWidget(attrs=SECRET),
        help_text="You find it under Basic Information in the Slack app's settings.",
    )


class ConnectForm(SecretsForm, OfOrganization):
    name = forms.CharField(max_length=80, widget=UnfoldAdminTextInputWidget)
    team_id = forms.CharField(
        label="Workspace id", max_length=32, widget=UnfoldAdminTextInputWidget, help_text="For example T024BE7LD."
    )
    field_order = ["organization", "name", "team_id", "bot_token", "signing_secret"]


class RouteForm(OfOrganization):
    channel = forms.ChoiceField(
        choices=[("slack", "A card in a Slack channel"), ("email", "Mail to the reviewers who may decide")],
        widget=UnfoldAdminSelectWidget,
    )
    contract_slug = forms.CharField(
        label="Contract",
        max_length=63,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="The contract's slug. Leave it empty for all contracts.",
    )
    tier = forms.CharField(
        max_length=63, required=False, widget=UnfoldAdminTextInputWidget, help_text="Leave it empty for all tiers."
    )
    workspace: Any = forms.ModelChoiceField(queryset=None, required=False, widget=UnfoldAdminSelectWidget)
    chat_channel = forms.RegexField(
        r"^[CGD][A-Z0-9]{2,30}$",
        label="Channel id",
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="For Slack, for example C024BE91L. Invite the app to the channel first.",
    )
    digest_minutes = forms.IntegerField(
        label="Minutes between digests",
        initial=0,
        min_value=0,
        max_value=LONGEST_DIGEST,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="For mail. With 0, every review sends its own message at once.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["workspace"].queryset = workspace_choices(organizations=fields["organization"].queryset)


def _workspace_connect_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]
) -> HttpResponse:
    made = workspace_connect(actor=console_actor(request), at=timezone.now(), **data)
    return model_admin.done(request, made, "Connected. Now enter the address below in the Slack app's settings.")


def _workspace_secrets_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ChatWorkspace, data: dict[str, Any]
) -> str:
    workspace_secrets_replace(actor=console_actor(request), at=timezone.now(), workspace_id=obj.id, **data)
    return "Replaced. The workspace is active, and waiting messages are sent."


def _workspace_disable_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ChatWorkspace, data: dict[str, Any]
) -> str:
    workspace_disable(actor=console_actor(request), at=timezone.now(), workspace_id=obj.id, **data)
    return "Disabled. Nothing is sent to it, and nobody can decide through it."


def _route_add_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]) -> HttpResponse:
    workspace = data.pop("workspace")
    data["channel"] = NotifyChannel(data["channel"])
    made = route_create(
        actor=console_actor(request),
        at=timezone.now(),
        base_url=public_url(),
        workspace_id=workspace.id if workspace else None,
        **data,
    )
    return model_admin.done(request, made, "Created. It announces reviews that open from now on.")


def _route_disable_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: NotificationRoute, data: dict[str, Any]
) -> str:
    route_disable(actor=console_actor(request), at=timezone.now(), route_id=obj.id, **data)
    return "Disabled. Waiting messages are kept until you enable it."


def _route_enable_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: NotificationRoute, data: dict[str, Any]
) -> str:
    route_enable(actor=console_actor(request), at=timezone.now(), route_id=obj.id)
    return "Enabled. Waiting messages are sent, unless their review has ended."


def _chat_identity_unlink_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ChatIdentity, data: dict[str, Any]
) -> HttpResponse:
    chat_identity_unlink(actor=console_actor(request), at=timezone.now(), identity_id=obj.id, **data)
    messages.success(request, "Unlinked. That account cannot decide anything from now on.")
    return HttpResponseRedirect(model_admin.page_url("changelist"))


def _notification_resend_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: Notification, data: dict[str, Any]
) -> str:
    notification_resend(actor=console_actor(request), at=timezone.now(), notification_id=obj.id)
    return "The message will be sent again shortly, unless its review has ended."


class StatePages(ConsoleAdmin):
    @display(description="State", label=STATE_LABELS)
    def state_shown(self, obj: Any) -> str:
        return str(obj.state)


@admin.register(ChatWorkspace)
class ChatWorkspaceAdmin(StatePages):
    addable = True
    add_act = Act(
        "connect",
        "Connect a Slack workspace",
        "Holdpoint encrypts the secrets and never shows them again.",
        _workspace_connect_act,
        ConnectForm,
    )
    list_display = ["name", "organization", "team_id", "state_shown", "disabled_reason", "created_at"]
    list_select_related = ["organization"]
    fields = [
        "name",
        "organization",
        "team_id",
        "address",
        "state_shown",
        "disabled_reason",
        "disabled_at",
        "created_at",
    ]
    readonly_fields = fields
    acts = [
        Act(
            "replace-secrets",
            "Replace the secrets",
            "Replaces both secrets at once and makes the workspace active again.",
            _workspace_secrets_act,
            SecretsForm,
        ),
        Act(
            "disable",
            "Disable",
            "Nothing more is sent to this workspace, and nobody can decide through it from now on.",
            _workspace_disable_act,
            ReasonForm,
            available=lambda obj: obj.state == RouteState.ACTIVE,
            danger=True,
        ),
    ]

    @admin.display(description="Address for the app's interactivity and command")
    def address(self, obj: ChatWorkspace) -> str:
        return f"{public_url() or '<HOLDPOINT_PUBLIC_URL>'}/integrations/slack/{obj.id}"


@admin.register(NotificationRoute)
class NotificationRouteAdmin(StatePages):
    addable = True
    add_act = Act(
        "create",
        "Add a notification route",
        "The route announces reviews that open from now on. Messages do not contain the content of the action.",
        _route_add_act,
        RouteForm,
        button="Add",
    )
    list_display = ["channel", "contract", "tier_shown", "target", "state_shown", "disabled_reason"]
    fields = [
        "organization",
        "channel",
        "contract",
        "tier_shown",
        "workspace",
        "chat_channel",
        "digest_minutes",
        "state_shown",
        "disabled_reason",
        "disabled_at",
        "created_at",
    ]
    readonly_fields = fields
    acts = [
        Act(
            "disable",
            "Disable",
            "This route sends nothing more. Waiting messages are kept until you enable it.",
            _route_disable_act,
            ReasonForm,
            available=lambda obj: obj.state == RouteState.ACTIVE,
            danger=True,
        ),
        Act(
            "enable",
            "Enable",
            "The route sends again. Waiting messages are sent too, unless their review has ended.",
            _route_enable_act,
            available=lambda obj: obj.state == RouteState.DISABLED,
        ),
    ]

    @admin.display(description="Contract")
    def contract(self, obj: NotificationRoute) -> str:
        return obj.contract_slug or "every"

    @admin.display(description="Tier")
    def tier_shown(self, obj: NotificationRoute) -> str:
        return obj.tier or "every"


@admin.register(ChatIdentity)
class ChatIdentityAdmin(ConsoleAdmin):
    list_display = ["user", "workspace", "chat_user", "linked_at"]
    list_select_related = ["user", "workspace"]
    fields = ["user", "workspace", "chat_user", "linked_at"]
    readonly_fields = fields
    acts = [
        Act(
            "unlink",
            "Unlink",
            "This account cannot decide anything from now on. The person can link it again.",
            _chat_identity_unlink_act,
            ReasonForm,
            danger=True,
        )
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ChatIdentity]:
        return super().get_queryset(request).select_related("workspace", "user")


@admin.register(Notification)
class NotificationAdmin(ConsoleAdmin):
    list_display = ["kind", "to", "state_shown", "tries", "last_error", "created_at", "sent_at", "next_try_at"]
    list_filter = [
        choice_filter("state", {state.value: state.value for state in NotificationState}, indexed=False),
        choice_filter("kind", {kind.value: kind.value for kind in NotifyKind}, indexed=False),
    ]
    hot = True
    search_fields = ["id"]
    search_help_text = "The id of a message or of its review."
    ordering = ["-id"]
    fields = [
        "kind",
        "review",
        "route",
        "recipient",
        "digest",
        "state_shown",
        "tries",
        "last_error",
        "next_try_at",
        "sent_at",
        "refresh_at",
        "created_at",
    ]
    readonly_fields = fields
    acts = [
        Act(
            "resend",
            "Send again",
            "Holdpoint sends the message again shortly, unless its review has ended.",
            _notification_resend_act,
            available=lambda obj: obj.state in AGAIN,
        )
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Notification]:
        return super().get_queryset(request).select_related("route", "recipient")

    def matches(self, term: str) -> Q | None:
        return by_id(term, "id", "review_id")

    @admin.display(description="To")
    def to(self, obj: Notification) -> str:
        return str(obj.recipient) if obj.recipient else obj.route.target if obj.route else ""

    @display(description="State", label=DELIVERY_LABELS)
    def state_shown(self, obj: Notification) -> str:
        return obj.state
