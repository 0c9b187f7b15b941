"""Reading. Nothing here writes; locks are named as such."""
