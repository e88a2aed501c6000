"""Which engine runs, and why: what callers ask for, traits of the matrix, and the engines' predictions."""
