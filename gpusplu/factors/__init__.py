"""Public objects: factors, batches of them, Schur complements, and the functions that make them."""
