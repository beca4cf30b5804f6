"""The ways an overlay can be refused. Who catches them decides the exit code: 6 for drift, 2 for the rest."""


class OverlayError(Exception):
    """An overlay, or the way it was asked for, is wrong: a configuration error (exit 2)."""


class DriftError(OverlayError):
    """What is on disk is not what was pinned: a preimage, a postimage or a stage (exit 6)."""


class ImportsError(DriftError):
    """The hashes fit, but an overlaid module does not import in this engine: a module or a name is missing (exit 6)."""
