"""Middleware, in the order of settings.MIDDLEWARE."""
