"""Models that libraries know by name."""
