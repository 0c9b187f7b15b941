"""The report's page: head, style, and all sections in order."""

from pathlib import Path

from governance.evidence.rules.report import sections
from governance.evidence.rules.report.markup import text_html
from governance.evidence.rules.report.told import ReportFacts

STYLE = Path(__file__).with_name("report.css").read_text()
PARTS = (
    sections.summary_section,
    sections.picture_section,
    sections.attempts_section,
    sections.timeline_section,
    sections.decisions_section,
    sections.reviews_section,
    sections.executions_section,
    sections.quarantine_section,
    sections.steps_section,
    sections.interventions_section,
    sections.events_section,
    sections.costs_section,
    sections.people_section,
    sections.ties_section,
)
# Nothing is loaded and no script runs, also if a text were not escaped: the file is opened far from Holdpoint.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
NOTE = (
    "This page is for reading. The rows behind it are in the JSON files of the same bundle. Its hash and theirs stand "
    "in the ledger; <code>holdpoint-verify BUNDLE.zip --keys holdpoint-keys.json</code> checks them against the signed "
    "head, without Holdpoint. The copy of it in the bundle, <code>verify.py</code>, is a convenience."
)


def report_html(told: ReportFacts) -> str:
    title = text_html(f"Evidence: {told.material.subject.title}")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{text_html(POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{title}</title>",
            f"<style>{STYLE}{told.material.picture_style}</style>",
            "</head>",
            "<body>",
            f'<header><p class="soft">Holdpoint evidence bundle</p><h1>{title}</h1><p class="note">{NOTE}</p></header>',
            "<main>",
            *(part(told) for part in PARTS),
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )
