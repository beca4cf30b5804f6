"""Random batches through the engine's own methods, the reference and the kernel. Only `engine` imports vllm."""
