"""What a warehouse does, one file per action. The facade in warehouse.py only hands on to these."""
