"""Pure bracket statistics: schedules, fits, intervals, claims, verdicts, their sentences and plot data.

Imports numpy and scipy.special only; reads no file, no clock, no network. Rules and sources: statistics.md.
"""
