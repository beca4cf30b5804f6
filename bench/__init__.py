"""The project measured: each module is one command that writes one table."""
