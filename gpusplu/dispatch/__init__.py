"""What an engine is chosen by: what callers ask for, what machines have, and predicted seconds."""
