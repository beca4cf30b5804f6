"""Patches over the engine, pinned by hash: read (manifest), composed (compose), staged beside the original (stage).

Nothing here edits what is installed, and nothing here imports the engine.
"""
