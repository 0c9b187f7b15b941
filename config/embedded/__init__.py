"""Real PostgreSQL and Valkey from wheels, for `make run` and `make test`. No Django, no product code."""
