"""The scheduled task of signing in, started earlier by wake-ups."""

from celery import shared_task
from django.utils import timezone

from governance.outside.wake_up import wake_up_received
from governance.people.configured import mail_reaches_people
from governance.people.services.links import SIGN_IN_MAIL_TASK
from governance.people.services.sign_in_mail import password_resets_look_up, sign_in_links_send
from reasoncodes.base.tenancy import every_tenant


@shared_task(name="governance.tasks.sign_in_mail_send")
def sign_in_mail_send_task() -> None:
    """Looks up names for new passwords, and sends the one-time links that are due."""
    # Before reading: a row that commits after the rows were read must send another wake-up.
    wake_up_received(SIGN_IN_MAIL_TASK)
    if not mail_reaches_people():
        return
    with every_tenant():
        password_resets_look_up(at=timezone.now())
        sign_in_links_send(now=timezone.now)
