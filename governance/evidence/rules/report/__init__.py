"""The bundle for people's eyes: one HTML file that needs nothing else, prints well, and runs no script."""

from governance.evidence.rules.report.page import report_html
from governance.evidence.rules.report.told import ReportFacts

__all__ = ["ReportFacts", "report_html"]
