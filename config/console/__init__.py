"""Pages of the operator console that belong to no single app: overview, search, getting started."""
