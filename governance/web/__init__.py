"""Pages and middleware of this app."""
