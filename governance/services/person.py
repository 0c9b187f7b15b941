"""People: create them with a password that they change, or none."""

from datetime import datetime

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from governance.ledger.append import ledger_append
from governance.models import User
from reasoncodes.actors import Actor
from reasoncodes.errors import AlreadyExists, FieldError, InvalidInput


def person_create(
    *,
    actor: Actor,
    at: datetime,
    username: str,
    password: str | None = None,
    is_staff: bool = False,
    email: str = "",
) -> User:
    """Nothing about the person enters the ledger but the fact and a salted commitment."""
    user = User(username=username, email=email, is_staff=is_staff)
    if password is not None:
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise InvalidInput(errors=[FieldError("/password", message) for message in error.messages]) from error
        user.set_password(password)
    else:
        user.set_unusable_password()
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            ledger_append(
                action="person.created",
                organization_id=None,
                subject_type="person",
                subject_id=user.id,
                actor=actor,
                at=at,
                payload={"is_staff": is_staff},
            )
    except IntegrityError as error:
        raise AlreadyExists("A person with this username exists.") from error
    return user
