"""Errors of the chat: callbacks, links and decisions that are refused."""

from reasoncodes.base.errors import DomainError


class CallbackRefused(DomainError):
    """The callback has no valid signature, is older than five minutes, or was received before.

    Slack signs every request with the app's signing secret. Check the secret in the console and the clock of this
    server. Check that the address in the app's settings ends with the workspace's id. Every cause gets the same answer,
    so that an attacker learns nothing from it.
    """

    code = "callback-refused"
    status = 401
    title = "Callback refused"


class ChatNotLinked(DomainError):
    """Your chat account is not linked to a person in Holdpoint, so nothing was decided.

    Sign in to Holdpoint and open Notifications under your name. Get a code there and type it in the chat.
    """

    code = "chat-not-linked"
    status = 403
    title = "Chat account not linked"


class ChatAccountTaken(DomainError):
    """This chat account is linked to another person in Holdpoint.

    That person can unlink it on their Notifications page, or an operator can do it in the console. Then link it again.
    """

    code = "chat-account-taken"
    status = 409
    title = "Linked to somebody else"


class LinkCodeRefused(DomainError):
    """The code is wrong, already used, or older than ten minutes.

    Get a new code on the Notifications page in Holdpoint, and type it in the chat within ten minutes.
    """

    code = "link-code-refused"
    status = 403
    title = "Code refused"


class DecidedOnThePage(DomainError):
    """You can judge a case only on its card in Holdpoint, not in the chat.

    Open the card: it shows everything that you need to judge.
    """

    code = "decided-on-the-page"
    status = 409
    title = "Decide on the card"
