"""MLflow to tables. Never talks to an engine; of the runner it knows the names only."""
