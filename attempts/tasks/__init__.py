"""Tasks of this app: they take ids, hold no rule, and are safe twice, late, or never."""
