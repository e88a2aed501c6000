"""Hard systems by the thousand: no answer is wrong without a word (see docs/use/reliability.md)."""
