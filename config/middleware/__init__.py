"""Our middleware. The order is in settings.MIDDLEWARE."""
