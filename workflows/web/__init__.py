"""What workflows add to other pages."""
