"""The two ways an overlay can be refused. Who catches them decides the exit code: 2 for the first, 6 for the second."""


class OverlayError(Exception):
    """An overlay, or the way it was asked for, is wrong: a configuration error (exit 2)."""


class DriftError(OverlayError):
    """What is on disk is not what was pinned: a preimage, a postimage or a stage (exit 6)."""
