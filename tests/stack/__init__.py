"""Real processes: embedded servers, the supervisor, and what is left after they end."""
