"""What lies in which module of the core: in _core what the package calls, in _core_testing what only tests call."""

import re
from pathlib import Path

import gpusplu
from gpusplu import _core, _core_testing


def functions(module):
    return {name for name, value in vars(module).items() if type(value).__name__ == "nb_func"}


def test_the_package_calls_the_functions_of_its_core_and_no_others():
    called = set()
    for path in Path(gpusplu.__file__).parent.rglob("*.py"):
        text = path.read_text()
        called |= set(re.findall(r"\b_core\w*\.(\w+)", text))
        called |= {name for line in re.findall(r"from \.+_core import (.+)", text) for name in re.findall(r"\w+", line)}
    assert functions(_core) - {"set_num_threads"} <= called  # that one is for users of threadpoolctl
    assert len(functions(_core)) > 20
    assert not functions(_core_testing) - functions(_core) & called
