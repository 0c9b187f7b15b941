"""HTTP doors: views beside their serializers."""
