"""Attacks on a running server and a running client, measured with a well-behaved client."""
