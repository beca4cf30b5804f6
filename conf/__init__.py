"""The Hydra tree. A package, so that it is found from a source tree, an editable install and a wheel alike."""
