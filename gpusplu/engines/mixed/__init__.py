"""Mixed precision: factors in single precision whose answers are refined to double precision, around any engine."""
