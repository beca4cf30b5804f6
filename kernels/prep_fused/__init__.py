"""EXP-7: one launch in place of the chain that prepares a decode step's inputs (vLLM 0.29.0, V2 runner)."""
