"""Browser tests: real pages of a running stack in Debian's Chromium."""
