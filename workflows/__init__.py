"""Many steps, many modules: definitions, engine, events."""
