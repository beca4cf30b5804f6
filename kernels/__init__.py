"""Triton kernels with a reference beside each: torch and triton only, nothing of ours."""
