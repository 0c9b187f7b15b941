"""Small pieces of HTML for the report. These functions escape every text; only `Html` is inserted unchanged."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Html(str):
    """Markup whose parts are escaped. Text that came from outside must not be wrapped in it unescaped."""

    __slots__ = ()


def text_html(value: Any) -> Html:
    if isinstance(value, Html):
        return value
    if value is None or value == "":
        return Html("–")
    if isinstance(value, bool):
        return Html("yes" if value else "no")
    return Html(escape(str(value)))


def code_markup(value: Any) -> Html:
    return Html(f"<code>{escape(str(value))}</code>") if value else text_html("")


def moment_html(value: str | None) -> Html:
    """A time in readable form: seconds, UTC."""
    return (
        Html(f'<time datetime="{escape(value)}">{escape(value[:19].replace("T", " "))}</time>')
        if value
        else text_html("")
    )


def badge(word: str, tone: str = "plain") -> Html:
    return Html(f'<span class="badge {escape(tone)}">{escape(word)}</span>')


def table_html(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> Html:
    body = ["<tr>" + "".join(f"<td>{text_html(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    if not body:
        return Html(f'<p class="soft">{escape(empty)}</p>')
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    return Html(
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    )


def facts(pairs: Iterable[tuple[str, Any]]) -> Html:
    return Html(
        "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{text_html(value)}</dd>" for name, value in pairs) + "</dl>"
    )


def section(title: str, *parts: str) -> Html:
    return Html(f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>")
