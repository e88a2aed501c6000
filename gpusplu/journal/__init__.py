"""What is being done, told to those who listen: a logger, verbose=, progress."""
