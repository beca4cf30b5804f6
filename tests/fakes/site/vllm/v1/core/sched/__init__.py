"""Part of the fake engine."""
