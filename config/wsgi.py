"""The WSGI entry point: Django behind the guard that leaves unread bodies unread."""

import os

from django.core.wsgi import get_wsgi_application

from config.server.unread_body import UnreadBodyGuard

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.production")

application = UnreadBodyGuard(get_wsgi_application())
