"""Wiring: settings, URLs, Celery, middleware, servers, and pages that belong to no app. It may import every app; no app
imports it."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
