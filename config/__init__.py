"""Wiring only: settings, URLs, Celery, middleware. Everything may be wired here; nothing imports it."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
