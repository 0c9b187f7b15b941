"""The page of a person's own notifications: choices about mail, and linked chat accounts."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from attempts.notify.configured import public_url
from attempts.notify.selectors import mail_choice, workspaces_of
from attempts.notify.services.chat_accounts import chat_identity_unlink_own, link_code_issue, mail_choose
from attempts.notify.states import MailMode
from attempts.reviews.web.base import ReviewPage
from reasoncodes.base.errors import FieldError, InvalidInput

MODES = {
    MailMode.ROUTE: "As my organization sends it",
    MailMode.EACH: "A mail for each review, at once",
    MailMode.DIGEST: "One mail for all, every hour or as my organization set it",
    MailMode.OFF: "No mail and no reminders",
}


class OwnPage(ReviewPage):
    def shown(self, request: HttpRequest, **more: Any) -> HttpResponse:
        user: Any = request.user
        context = {
            "choice": mail_choice(user_id=user.id),
            "modes": [(mode.value, words) for mode, words in MODES.items()],
            "workspaces": workspaces_of(user=user),
            "public_url": public_url(),
        }
        return render(request, "review/notifications.html", context | more)

    @staticmethod
    def back(request: HttpRequest, words: str) -> HttpResponse:
        messages.success(request, words)
        return HttpResponseRedirect(reverse("review:notifications"))


class NotificationsPage(OwnPage):
    def get(self, request: HttpRequest) -> HttpResponse:
        return self.shown(request)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Stores the choice about mail. Chat accounts have their own URLs."""
        mode = request.POST.get("mode", "")
        if mode not in set(MailMode):
            raise InvalidInput(errors=[FieldError("/mode", f"one of: {', '.join(MailMode)}")])
        user: Any = request.user
        mail_choose(user=user, mode=MailMode(mode))
        return self.back(request, "Saved.")


class LinkCodeView(OwnPage):
    """Makes a code and shows it, once."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, workspace_id: UUID) -> HttpResponse:
        user: Any = request.user
        code = link_code_issue(user=user, at=timezone.now(), workspace_id=workspace_id)
        answer = self.shown(request, code=code, code_for=workspace_id)
        # The code must not stay in a cache of the browser.
        answer["Cache-Control"] = "no-store"
        return answer


class UnlinkView(OwnPage):
    http_method_names = ["post"]

    def post(self, request: HttpRequest, identity_id: UUID) -> HttpResponse:
        chat_identity_unlink_own(actor=self.actor, at=timezone.now(), identity_id=identity_id)
        return self.back(request, "Unlinked. That account cannot decide anything from now on.")
