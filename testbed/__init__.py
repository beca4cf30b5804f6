"""A tiny, honest target and its DFlash drafters: data, training script, weights. A toy for booting a real engine."""
