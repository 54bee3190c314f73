"""The demo: a real Airflow and a real Spark on this machine, driven as a person would. Not part of the package."""
