"""What `make run` and `make test` start: servers, steps and processes, in order, and how they end."""
