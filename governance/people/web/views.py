"""Sign-in pages: the form for /admin/, the way from a sign-in to the first page, one's own password, and the list of a
person's own sessions and one-time links."""

from typing import Any

from allauth.account.views import LoginView, PasswordChangeView
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views import View

from governance.people.rules.roles import REVIEW
from governance.people.selectors.people import organizations_where
from governance.people.selectors.sign_in import sessions_of, sign_in_links_of
from governance.people.services.people import session_end, sessions_end_others


class ConsoleSignIn(LoginView):
    """`/admin/login/`: the same form as /accounts/login/."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user: Any = request.user
        # Without this answer, console and sign-in would redirect a signed-in person who is not staff to each other for
        # ever.
        if user.is_authenticated and not user.is_staff:
            return render(request, "account/not_staff.html", status=403)
        return super().dispatch(request, *args, **kwargs)

    def get_default_success_url(self) -> str:
        return "/admin/"


class HomeView(LoginRequiredMixin, View):
    """The page where this person begins: what waits for their decision, else the console."""

    def get(self, request: HttpRequest) -> HttpResponse:
        user: Any = request.user
        reviews = bool(organizations_where(user=user, permission=REVIEW))
        return redirect("admin:index" if user.is_staff and not reviews else "review:queue")


class OwnPasswordView(PasswordChangeView):
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user: Any = request.user
        # allauth would go to its page for a first password, which this installation does not have.
        if user.is_authenticated and not user.has_usable_password():
            return render(request, "account/no_password.html")
        answer: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return answer


class SessionsView(LoginRequiredMixin, View):
    def get(self, request: HttpRequest) -> HttpResponse:
        user: Any = request.user
        context = {
            "sessions": sessions_of(user=user),
            "current": request.session.session_key,
            "links": sign_in_links_of(user=user),
        }
        return render(request, "usersessions/usersession_list.html", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        user: Any = request.user
        ended = sessions_end_others(user=user, current_key=request.session.session_key)
        messages.success(request, f"{ended} other session(s) ended.")
        return redirect("usersessions_list")


class SessionEndView(LoginRequiredMixin, View):
    http_method_names = ["post"]

    def post(self, request: HttpRequest, session_id: int) -> HttpResponse:
        user: Any = request.user
        session_end(user=user, session_id=session_id)
        messages.success(request, "The session has ended.")
        return redirect("usersessions_list")
