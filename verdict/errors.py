"""The one error of this room."""


class VerdictError(ValueError):
    """A schedule, a reading or a claim from which no honest number can be made.

    The message says what was found, what is wanted, and what to do.
    """
