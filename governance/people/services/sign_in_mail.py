"""Password resets that people ask for, and the mails with one-time links. A row is the order; a worker looks the name
up, makes the token when it sends, and tries again later if the mail server does not answer."""

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from governance.ledger.services import ledger_append, person_commitment
from governance.outside.keyed_hash import keyed_hash
from governance.outside.secret_box import SecretUnreadable, seal, unseal
from governance.outside.wake_up import wake_up_once
from governance.people.adapters import sign_in_mail_send
from governance.people.errors import TooManyAsked
from governance.people.models import PasswordResetRequest, SignInLink, User
from governance.people.rules.sign_in import (
    invitation_letter,
    password_reset_letter,
    token_generate,
    token_hash,
)
from governance.people.selectors.people import provider_brought
from governance.people.selectors.sign_in import has_sign_in
from governance.people.services.links import PASSWORD_RESET, SIGN_IN_MAIL_TASK, link_address, password_reset_by_mail
from governance.people.services.people import places_or_none, roles_held_in
from reasoncodes.base.actors import CLOCK
from reasoncodes.base.tenancy import every_tenant

PURPOSE = "password reset"
LONGEST_NAME = 254
WINDOW, ASKED_MOST, LINKS_MOST = timedelta(minutes=15), 5, 3
MAIL_TRIES, BATCH = 6, 50
KEEP = timedelta(days=1)
log = structlog.get_logger("holdpoint.sign_in")


def password_reset_ask(*, at: datetime, typed: str, source: str) -> None:
    """Known and unknown names cost the same here, so the answer and its time tell nothing. `source` is the address of
    whoever asks."""
    asked = keyed_hash(source, purpose=PURPOSE)
    with transaction.atomic():
        if PasswordResetRequest.objects.filter(source_hash=asked, at__gt=at - WINDOW).count() >= ASKED_MOST:
            raise TooManyAsked
        sealed = seal(typed.strip()[:LONGEST_NAME], purpose=PURPOSE)
        PasswordResetRequest.objects.create(typed_sealed=sealed, source_hash=asked, at=at)
        wake_up_once(SIGN_IN_MAIL_TASK)


def password_resets_look_up(*, at: datetime) -> int:
    """Makes links for the people whose names were typed. Returns how many names were looked up."""
    done = 0
    while done < BATCH and _look_up_next(at):
        done += 1
    PasswordResetRequest.objects.filter(at__lt=at - KEEP).delete()
    return done


def _look_up_next(at: datetime) -> bool:
    with transaction.atomic():
        # Two workers take different rows.
        waiting = PasswordResetRequest.objects.select_for_update(skip_locked=True).exclude(typed_sealed="")
        request = waiting.order_by("id").first()
        if request is None:
            return False
        user = _meant(request.typed_sealed)
        request.typed_sealed = ""
        request.save(update_fields=["typed_sealed"])
        if user is not None and _may_be_mailed(user, at):
            password_reset_by_mail(actor=CLOCK, at=at, user=user)
    return True


def _meant(sealed: str) -> User | None:
    """By username, else by address if exactly one active person has it."""
    try:
        typed = unseal(sealed, purpose=PURPOSE)
    except SecretUnreadable:  # typed before SECRET_KEY changed; the person asks again
        return None
    if not typed:
        return None
    active = User.objects.filter(is_active=True)
    found = active.filter(username=typed).first()
    if found is not None or "@" not in typed:
        return found
    by_address = list(active.filter(email__iexact=typed)[:2])
    return by_address[0] if len(by_address) == 1 else None


def _may_be_mailed(user: User, at: datetime) -> bool:
    """Only somebody who has a sign-in already, and not so often that their mailbox fills. Nobody whom a provider
    brought here: it can change their address, so whoever holds its SCIM token would get the link and become them."""
    if not user.email or not has_sign_in(user=user) or provider_brought(user_id=user.id):
        return False
    lately = SignInLink.objects.filter(user=user, purpose=PASSWORD_RESET, created_at__gt=at - WINDOW)
    return lately.count() < LINKS_MOST


def sign_in_links_send(*, now: Callable[[], datetime]) -> int:
    """Sends the links that are due, one by one. Returns how many the mail server took."""
    sent = 0
    for _ in range(BATCH):
        taken = _take(now())
        if taken is None:
            break
        link, token = taken
        if _send(link, token):
            sent += 1
            _mailed(link, now())
        else:
            log.warning("sign_in_mail_not_sent", link_id=str(link.id), tries=link.mail_tries)
    return sent


def _take(at: datetime) -> tuple[SignInLink, str] | None:
    """The next link with a new token, whose hash is committed before the mail goes out: a mail never has a link that
    does not work. A second try has another token, and the first one's ends."""
    with transaction.atomic():
        due = SignInLink.objects.select_for_update(skip_locked=True, of=("self",)).select_related("user")
        link = due.filter(mail_due_at__lte=at, ended_at=None).order_by("mail_due_at").first()
        if link is None:
            return None
        token = token_generate()
        link.mail_tries += 1
        link.token_sha256 = token_hash(token)
        later = at + timedelta(seconds=30 * 4**link.mail_tries)
        link.mail_due_at = later if link.mail_tries < MAIL_TRIES and later < link.expires_at else None
        link.save(update_fields=["mail_tries", "token_sha256", "mail_due_at"])
    return link, token


def _send(link: SignInLink, token: str) -> bool:
    letter = password_reset_letter if link.purpose == PASSWORD_RESET else invitation_letter
    subject, body = letter(username=link.user.username, link=link_address(token), until=link.expires_at)
    return sign_in_mail_send(to=link.user.email, subject=subject, body=body)


def _mailed(link: SignInLink, at: datetime) -> None:
    with every_tenant(), transaction.atomic():
        SignInLink.objects.filter(id=link.id).update(mailed_at=at, mail_due_at=None)
        for place in places_or_none(roles_held_in(user=link.user)):
            ledger_append(
                action=f"{link.purpose}.mailed",
                organization_id=place,
                subject_type="person",
                subject_id=link.user_id,
                actor=CLOCK,
                at=at,
                payload={"person": person_commitment(user_id=link.user_id), "link": str(link.id)},
            )
