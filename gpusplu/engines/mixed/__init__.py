"""Mixed precision: factors in single precision with solutions refined to double precision, around any engine."""
