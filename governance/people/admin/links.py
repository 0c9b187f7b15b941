"""The console's page that shows a one-time link once, and the words about a link on a person's page."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from governance.people.models import SignInLink, User
from governance.people.selectors import sign_in_links_of


def link_once(
    request: HttpRequest, *, address: str, user: User, title: str, back: str, back_title: str
) -> HttpResponse:
    """`address` may be without our own name, if the installation does not know it: the request does."""
    context = admin.site.each_context(request) | {
        "title": title,
        "address": request.build_absolute_uri(address),
        "person": user,
        "link": sign_in_links_of(user=user, limit=1)[0],
        "back": back,
        "back_title": back_title,
    }
    response = render(request, "admin/holdpoint/link_once.html", context)
    # Whoever reads this page can become the person: no browser or proxy cache may keep it.
    response["Cache-Control"] = "no-store"
    return response


def link_told(link: SignInLink) -> str:
    what = "Invitation" if link.purpose == SignInLink.Purpose.INVITATION else "New password"
    way = "by mail" if link.delivery == SignInLink.Delivery.MAIL else f"shown to {link.shown_to or 'nobody known'}"
    made = f"{what} of {link.created_at:%d %B %Y %H:%M}, {way}"
    if link.ended_at is None:
        return f"{made}: not used, until {link.expires_at:%d %B %Y %H:%M} UTC"
    beside = ", from an address where that person was signed in too" if link.used_beside else ""
    return f"{made}: {link.ended_how} {link.ended_at:%d %B %Y %H:%M}{beside}"
