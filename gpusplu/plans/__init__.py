"""Plans: what the kernels of an engine are told before they see values."""
