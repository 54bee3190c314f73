"""The sensor that waits for parts."""
