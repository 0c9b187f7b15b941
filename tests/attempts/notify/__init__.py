"""Chat and mail."""
