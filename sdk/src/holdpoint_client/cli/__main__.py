"""`python -m holdpoint_client.cli`, where the script is not on the path."""

import sys

from holdpoint_client.cli import main

if __name__ == "__main__":
    sys.exit(main())
