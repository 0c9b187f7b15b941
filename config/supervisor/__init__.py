"""What `make run` and `make test` start: servers, steps and processes, in which order, and how they are stopped."""
