"""`python -m config.server.healthcheck`: does the web server on this machine answer? For a container's health check.

It uses a host name from ALLOWED_HOSTS, because the server refuses requests to its address. It imports none of our code,
because it runs every few seconds.
"""

import http.client
import os
import sys


def main() -> int:
    port = int(os.environ.get("HOLDPOINT_BIND", "127.0.0.1:8000").rpartition(":")[2])
    name = os.environ.get("ALLOWED_HOSTS", "localhost").split(",")[0].strip()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        connection.request("GET", sys.argv[1] if len(sys.argv) > 1 else "/health", headers={"Host": name})
        return 0 if connection.getresponse().status == 200 else 1
    except OSError:
        return 1
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
