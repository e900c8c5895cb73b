"""`dataset_utils`, as in slim's `datasets`."""
