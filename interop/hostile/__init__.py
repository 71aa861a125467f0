"""Attacks on a running server and a running client, measured beside an honest client."""
