"""Attempts: intake, review, execution, quarantine and notifications."""
