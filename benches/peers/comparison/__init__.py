"""Runs programs that drive QUIC libraries through the same jobs, and compares what the kernel says they took."""
