"""A whole script as a group of tasks."""
