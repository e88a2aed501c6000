from typing import Any

NotPositiveDefinite: Any

def __getattr__(name: str) -> Any: ...
