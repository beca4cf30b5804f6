"""What is sent to an engine and counted of it: requests, streams, counters, warm-up, the measured window."""
