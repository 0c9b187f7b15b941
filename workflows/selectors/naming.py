"""Who did it, in one query with the rows: a username, a service's id, `erased`, or who the program acts as."""

from django.db.models import Case, CharField, F, OuterRef, Subquery, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, NullIf

from governance.models import PersonReference, User


def actor_name(*, kind: str = "actor_kind", ref: str = "actor_ref") -> Combinable:
    """For a commitment, as the record keeps it."""
    person = PersonReference.objects.filter(commitment=OuterRef(ref)).values("user__username")[:1]
    nobody = Case(When(**{kind: "person"}, then=Value("erased")), default=F(kind))
    service = NullIf(F(ref), Value(""))
    return Coalesce(Case(When(**{kind: "service"}, then=service), default=Subquery(person)), nobody)


def orderer_name() -> Combinable:
    """For `ordered_by`, which is an id: the order must find its person again."""
    person = User.objects.filter(id=OuterRef("ordered_by")).values("username")[:1]
    return Coalesce(Subquery(person), Cast("ordered_by", CharField()))
