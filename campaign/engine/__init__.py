"""An engine's process from its start to its proven death, and the witness of what it ran."""
