"""Parts of the console's forms: forms that know their row, reason codes, JSON in a text area, and how two JSON
documents differ."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_list

ABSENT = "absent"


class JsonTextError(ValueError):
    """The text is no JSON, or says a name twice; the message says where."""


def json_parse(text: str) -> Any:
    """The value, or JsonTextError. A name that appears twice is refused, because only one of the two values would
    count."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise JsonTextError(f"This is not JSON: {error.msg} (line {error.lineno}, column {error.colno}).") from None
    except RecursionError:
        raise JsonTextError("This JSON is nested too deeply.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise JsonTextError("An object has the same name twice. Remove one of them: only one would count.")
        found[name] = value
    return found


def pretty(value: Any, *, sort: bool = True) -> str:
    return json.dumps(value, indent=2, sort_keys=sort, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class TextLine:
    text: str
    changed: bool


def marked_lines(default: Any, value: Any) -> list[TextLine]:
    """The printed value. Lines that the default does not have are marked."""
    before, after = pretty(default).splitlines(), pretty(value).splitlines()
    changed: set[int] = set()
    # Without autojunk=False, difflib ignores lines that are frequent in a long document, such as brackets.
    for tag, _, _, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            changed.update(range(start, end))
    return [TextLine(text, index in changed) for index, text in enumerate(after)]


@dataclass(frozen=True, slots=True)
class Difference:
    pointer: str
    before: str
    after: str


def document_differences(default: Any, value: Any) -> list[Difference]:
    """Where the value differs from the default, in order. A list counts as one value."""
    return list(_differences(default, value, ""))


def _differences(before: Any, after: Any, pointer: str) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if name not in before or name not in after:
                yield Difference(place, _short(before, name), _short(after, name))
            else:
                yield from _differences(before[name], after[name], place)
    # Python says True == 1, JSON does not.
    elif before != after or type(before) is not type(after):
        yield Difference(pointer or "/", _text(before), _text(after))


def _short(value: dict[str, Any], name: str) -> str:
    return _text(value[name]) if name in value else ABSENT


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 200 else text[:199] + "…"


NOTE_LENGTH = 280
# Below DATA_UPLOAD_MAX_MEMORY_SIZE, so that a document that is too long is an error beside its field and not a 400.
JSON_LENGTH = 200_000


class ConsoleForm(forms.Form):
    """Knows the row that it is about and the request, for choices that depend on them."""

    def __init__(self, *args: Any, obj: Any = None, request: HttpRequest | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.obj = obj
        self.request = request


def intervention_choices(organization_id: Any, *, scope: Scope = Scope.INTERVENTION) -> list[tuple[str, str]]:
    """The reason codes that a person may give here. An organization's own row replaces the system's."""
    rows = reason_code_list(
        organization_ids=[organization_id] if organization_id else [],
        scope=scope,
        active=True,
        # PostgreSQL sorts NULL last: the organization's row comes first and wins.
    ).order_by("organization_id", "code")
    found: dict[str, str] = {}
    for row in rows:
        found.setdefault(row.code, f"{row.label} ({row.code})" + (", needs a note" if row.requires_note else ""))
    return [("", "Choose a reason"), *sorted(found.items(), key=lambda item: item[1])]


def hash_text(value: str) -> SafeString:
    """A long hexadecimal word that may be broken on a narrow screen."""
    parts = [(value[start : start + 16],) for start in range(0, len(value), 16)]
    return (
        format_html("<code>{}</code>", format_html_join(mark_safe("<wbr>"), "{}", parts)) if value else mark_safe("–")
    )


class ReasonForm(ConsoleForm):
    reason_code = forms.ChoiceField(label="Reason", choices=[], widget=UnfoldAdminSelectWidget)
    note = forms.CharField(
        required=False,
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="Up to 280 characters. Do not enter names, patient data or secrets: Holdpoint checks the text.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["reason_code"]
        field.choices = intervention_choices(self.obj.organization_id if self.obj else None)


class SuggestInput(UnfoldAdminTextInputWidget):
    """A text input with suggestions; other text is allowed too."""

    def __init__(self, suggestions: list[str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suggestions = suggestions or []

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        list_id = f"{name}-suggestions"
        field = super().render(name, value, {**(attrs or {}), "list": list_id}, renderer)
        options = format_html_join("", '<option value="{}"></option>', ((text,) for text in self.suggestions))
        return format_html('{}<datalist id="{}">{}</datalist>', field, list_id, options)


class CodeWidget(UnfoldAdminTextareaWidget):
    """Monospaced, without wrapping. A small script posts the form to `data-validate` while somebody types."""

    def __init__(self, *, rows: int = 24) -> None:
        super().__init__(attrs={"rows": rows, "spellcheck": "false", "autocomplete": "off", "wrap": "off"})
        self.attrs["class"] = f"{self.attrs.get('class', '')} hp-code"


class JsonTextField(forms.CharField):
    """JSON as text. Text that is not JSON is refused with line and column."""

    def __init__(self, *, rows: int = 24, sort: bool = True, **kwargs: Any) -> None:
        self.sort = sort
        super().__init__(max_length=JSON_LENGTH, widget=CodeWidget(rows=rows), strip=False, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) else pretty(value, sort=self.sort)

    def clean(self, value: Any) -> Any:
        try:
            return json_parse(super().clean(value))
        except JsonTextError as error:
            raise ValidationError(str(error), code="json") from error
