"""The campaign runner: boots a patched engine, proves the patch is on, measures it in a bracket, judges it by gates."""
