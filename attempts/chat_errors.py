"""Refusals of the chat door."""

from reasoncodes.errors import DomainError


class CallbackRefused(DomainError):
    """The callback is not signed by the workspace's chat, is older than five minutes, or was taken before.

    Slack signs every request with the app's signing secret. Check the secret in the console, the clock of this server,
    and that the address in the app's settings ends with the workspace's id. All causes get this one answer, so that
    guessing teaches nothing.
    """

    code = "callback-refused"
    status = 401
    title = "Callback refused"


class ChatNotLinked(DomainError):
    """Your chat account is not linked to a person in Holdpoint, so nothing was decided.

    Sign in to Holdpoint, open Notifications under your name, get a code there, and type it in the chat.
    """

    code = "chat-not-linked"
    status = 403
    title = "Chat account not linked"


class ChatAccountTaken(DomainError):
    """This chat account is linked to another person in Holdpoint.

    They unlink it on their Notifications page, or an operator does it in the console.
    """

    code = "chat-account-taken"
    status = 409
    title = "Linked to somebody else"


class LinkCodeRefused(DomainError):
    """The code is wrong, was used, or is older than ten minutes.

    Get a new one on the Notifications page in Holdpoint, and type it in the chat within ten minutes.
    """

    code = "link-code-refused"
    status = 403
    title = "Code refused"


class DecidedOnThePage(DomainError):
    """A case is judged on its card in Holdpoint, not in the chat.

    Open the card: it shows what there is to judge.
    """

    code = "decided-on-the-page"
    status = 409
    title = "Decide on the card"
