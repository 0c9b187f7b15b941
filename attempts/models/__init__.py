"""Tables of this app, one concept per file."""
