"""When the runs of a DAG come about."""
