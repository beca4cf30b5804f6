"""Version of the fake."""

__version__ = version = "0.0.0"
