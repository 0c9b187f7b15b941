"""Who may do what, why, and the proof."""
