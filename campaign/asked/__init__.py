"""What is asked of an engine: arms, knobs, variables, serve arguments, and who wrote each of them."""
