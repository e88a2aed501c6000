"""How this gpusplu was installed, for texts that name further packages to install."""

import re
from importlib import metadata
from pathlib import Path

__all__ = ["install_hint"]


def install_hint(*extras: str) -> str:
    """Command that installs the packages of one of these extras.

    Parameters
    ----------
    *extras : str
        Names from pyproject.toml; the first is recommended.

    Returns
    -------
    str
        ``pip install 'gpusplu[plot]'`` where pip took gpusplu from an index. For a checkout, a wheel or a URL pip would
        not find it there, or would build gpusplu again; then the packages by name, ``pip install 'matplotlib>=3.9'``.
    """
    needed = {} if from_index() else {extra: packages_of(extra) for extra in extras}
    wanted = [" ".join(f"'{name}'" for name in needed.get(extra, ())) or f"'gpusplu[{extra}]'" for extra in extras]
    return f"pip install {' or '.join(wanted)}"


def from_index() -> bool:
    """Whether pip installed this copy from an index; False for a package that is imported from its folder."""
    try:
        distribution = metadata.distribution("gpusplu")
    except metadata.PackageNotFoundError:
        return False
    itself = Path(str(distribution.locate_file("gpusplu"))).resolve() == Path(__file__).resolve().parents[1]
    return itself and distribution.read_text("direct_url.json") is None


def packages_of(extra: str) -> list[str]:
    """Requirements of an extra, without their conditions; none without metadata."""
    try:
        lines = metadata.requires("gpusplu") or []
    except metadata.PackageNotFoundError:
        return in_checkout(extra)
    named = re.compile(rf"""extra\s*==\s*["']{re.escape(extra)}["']""")
    return [line.partition(";")[0].strip() for line in lines if named.search(line)]


def in_checkout(extra: str) -> list[str]:
    """The same for a checkout that was never installed."""
    import tomllib

    try:
        project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return []
    return [line.partition(";")[0].strip() for line in project["optional-dependencies"].get(extra, [])]
