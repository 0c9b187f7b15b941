"""The readable report of a bundle: one HTML file without scripts or external resources, which prints well."""

from governance.evidence.rules.report.page import report_html
from governance.evidence.rules.report.told import ReportFacts

__all__ = ["ReportFacts", "report_html"]
