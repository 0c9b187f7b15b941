"""One governed execution, from intake to receipt."""
