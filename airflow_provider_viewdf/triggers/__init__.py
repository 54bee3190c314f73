"""What waits for parts in the triggerer, so that no worker has to."""
