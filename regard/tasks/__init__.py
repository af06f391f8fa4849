"""The tasks: what is to be learned, and how well it was; one file each, reading, batches and metrics."""
