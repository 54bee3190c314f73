"""The operators: load a batch, refresh a view."""
