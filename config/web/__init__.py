"""Pages that belong to no app: health, metrics, problem help, landing."""
