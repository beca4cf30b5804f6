"""A fake engine: vLLM's layout, its door, its log lines and its metrics around a paced generator of text."""

from vllm._version import __version__ as __version__
