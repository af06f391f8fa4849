"""What regard costs, beside its peers, in the same run."""
