"""Definitions from files, for the commands: reading, looking up names, printing findings."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from governance.console.admin.forms import JsonTextError, json_parse
from governance.tenancy.models import Organization, Product
from reasoncodes.base.errors import DomainError


def document_read(name: str) -> Any:
    try:
        return json_parse(Path(name).read_text("utf-8"))
    except OSError as error:
        raise CommandError(f"Cannot read {name}: {error.strerror}.") from error
    except (JsonTextError, UnicodeDecodeError) as error:
        text = str(error) if isinstance(error, JsonTextError) else "This is not UTF-8."
        raise CommandError(f"{name}: {text}") from error


def organization_named(slug: str) -> Organization:
    found = Organization.objects.filter(slug=slug).first()
    if found is None:
        raise CommandError(f"There is no organization {slug}.")
    return found


def product_named(organization: Organization, slug: str) -> Product:
    found = Product.objects.filter(organization=organization, slug=slug).first()
    if found is None:
        raise CommandError(f"{organization.slug} has no product {slug}.")
    return found


def findings_print(out: OutputWrapper, findings: Iterable[Any]) -> None:
    """Anything with rule, pointer and message: findings, or the errors of a refusal."""
    for finding in findings:
        out.write(f"{finding.pointer or '/'}  [{finding.rule}]  {finding.message}")


def command_error(refusal: DomainError) -> CommandError:
    return CommandError(refusal.detail)
