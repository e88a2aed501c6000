"""The cost model: predicted seconds, the constants they are made of, and their calibration."""
