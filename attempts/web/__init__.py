"""The review pages at /review/: they read, call one service, and render."""
