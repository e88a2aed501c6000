"""From a call to a factor: the request, the choice of an engine, the pattern cache, migration to a device."""
