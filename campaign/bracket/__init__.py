"""The boots of a run, one datum after another: start, prove, measure, stop, look, and the verdict."""
