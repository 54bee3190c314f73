"""From Airflow to a warehouse: connections, and which parts a run is for."""
