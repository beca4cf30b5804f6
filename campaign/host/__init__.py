"""The machine: who it is, what else it did during a boot, and how much its boots differ."""
