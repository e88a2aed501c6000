"""Makes `asv_bench` of this clone importable: it is not installed, and the clone's folder is not searched.

If it was, the clone's gpusplu would hide the one that is installed.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "asv_bench"

if "asv_bench" not in sys.modules:
    spec = spec_from_file_location("asv_bench", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)])
    sys.modules["asv_bench"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["asv_bench"])
