"""Fixtures that every folder of tests may use."""

pytest_plugins = ["object_stores", "postgres", "spark"]
