"""A definition's slug names its contract; within an organization it belongs to the definitions of one product."""

from uuid import UUID

from django.utils.text import slugify

from governance.services.note import reference_check
from reasoncodes.errors import AlreadyExists, FieldError, InvalidInput
from workflows.models import WorkflowDefinition
from workflows.selectors.definition import slug_is_anothers

LENGTH = 63


def slug_check(*, organization_id: UUID | None, product_id: UUID | None, slug: str) -> str:
    """Under the organization's lock: two products cannot both take it."""
    reference_check(reference=slug, pointer="/slug")
    if slug_is_anothers(organization_id=organization_id, product_id=product_id, slug=slug):
        raise AlreadyExists("Another product's definitions have this slug; it names their contract. Choose another.")
    return slug


def slug_from(name: object) -> str:
    slug = slugify(str(name)).replace("_", "-")[:LENGTH].strip("-")
    if not slug:
        raise InvalidInput(errors=[FieldError("/slug", "give a slug, or a name that one can be made of")])
    return slug


def slug_for_clone(*, source: WorkflowDefinition, organization_id: UUID, product_id: UUID | None, tail: str) -> str:
    """The source's; with `tail` or a number behind it when another product has that."""
    for end in ("", f"-{tail}", *(f"-{number}" for number in range(2, 1000))):
        slug = source.slug[: LENGTH - len(end)].strip("-") + end if len(end) < LENGTH else ""
        if slug and not slug_is_anothers(organization_id=organization_id, product_id=product_id, slug=slug):
            return slug
    raise InvalidInput(errors=[FieldError("/slug", "give one: all that could be made up are taken")])
