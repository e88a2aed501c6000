"""What users hold: factors, batches of them, Schur complements, and the functions that make them."""
