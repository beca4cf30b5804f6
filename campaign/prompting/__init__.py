"""Prompt files and what is looked for in an answer. Pure but for the reading of files."""
