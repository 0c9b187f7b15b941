"""One module per readiness area, with its schema and its safe default as data. Rules are in `..rules`."""
