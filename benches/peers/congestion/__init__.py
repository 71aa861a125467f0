"""What `controllers` is made from."""
