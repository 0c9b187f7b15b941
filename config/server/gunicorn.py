"""gunicorn's settings: threads, because requests wait for PostgreSQL; loopback unless HOLDPOINT_BIND names another
address."""

import os
import sys
from typing import Any

from gunicorn.arbiter import Arbiter

from config.logs import logging_settings

bind = os.environ.get("HOLDPOINT_BIND", "127.0.0.1:8000")
preload_app = True  # loaded once, then forked: half the start-up time, and no import opens a connection
worker_class = "config.server.edge.EdgeWorker"  # gthread, with clients waited for in its main loop; see there
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
threads = int(os.environ.get("WEB_THREADS", "8"))
keepalive = 15  # only switches it on; the seconds are in config.server.limits
sendfile = False  # answers are collected and sent by the main loop
timeout = 60
graceful_timeout = 10
# Workers are replaced now and then, so that a leak cannot grow for ever; the jitter keeps them from stopping all at
# once.
max_requests = 50_000
max_requests_jitter = 5_000
limit_request_line = 4096
limit_request_fields = 64
accesslog = None  # the application writes one JSON line per request, without the path
errorlog = "-"
# gunicorn's own lines contain the request's address and headers; our formatter removes them.
logconfig_dict = logging_settings(level=os.environ.get("LOG_LEVEL", "INFO"))


def on_starting(server: Any) -> None:
    """Runs before the first worker, while a fault still ends the whole server with one line."""
    from config.startup import web_prepared

    web_prepared(workers=workers)


def post_worker_init(worker: Any) -> None:
    """Runs before the first request: a database that was restored from an older backup must not accept one."""
    from config.startup import serving, web_statements_limited, web_waits_limited

    try:
        serving()
        web_statements_limited()
        web_waits_limited(threads=threads)
    except SystemExit as refusal:
        sys.stderr.write(f"{refusal}\n")
        sys.exit(Arbiter.WORKER_BOOT_ERROR)  # with any other code gunicorn would start it again and again


def child_exit(server: Any, worker: Any) -> None:
    """Removes the live gauges of a worker that has ended."""
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(worker.pid)
