"""People: create them with a password that they change, or none; end their access when they leave."""

from datetime import datetime
from uuid import UUID

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from governance.gate import gate_shut
from governance.ledger.append import ledger_append, person_commitment
from governance.models import User
from governance.selectors.subjects import person_organizations
from governance.services.note import note_create
from reasoncodes.actors import Actor
from reasoncodes.codes import Scope
from reasoncodes.errors import AlreadyExists, FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.selectors import reason_code_require


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


def person_deactivate(*, actor: Actor, at: datetime, user_id: UUID, reason_code: str, note: str = "") -> User:
    """Their sessions and keys to the console end with the commit; roles go. Behind the gate and under their row's lock:
    what they released is not sent afterwards, and no vote of theirs commits later."""
    reason_code_require(organization_id=None, scope=Scope.INTERVENTION, code=reason_code, note=note)
    with transaction.atomic():
        gate_shut()
        user = User.objects.select_for_update().filter(id=user_id).first()
        places = person_organizations(user=user) if user else set()
        if user is None or not places or not all(actor.may_act_in(place) for place in places):
            raise NotFound
        if not user.is_active:
            raise WrongState("This person has no access already.")
        stored = note_create(organization_id=None, text=note)
        user.groups.clear()
        user.is_active = False
        user.set_unusable_password()  # the hash signs the sessions: all of them end
        user.save(update_fields=["is_active", "password"])
        for place in sorted(places):
            ledger_append(
                action="person.deactivated",
                organization_id=place,
                subject_type="person",
                subject_id=user.id,
                actor=actor,
                at=at,
                payload={
                    "person": person_commitment(user_id=user.id),
                    "note_sha256": stored.sha256 if stored else None,
                },
                reason_code=reason_code,
            )
    return user
