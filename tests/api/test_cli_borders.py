"""The command line with files that nobody could read, names that no encoding has and outputs that take nothing."""

import os
import subprocess
from pathlib import Path

import pytest

from support.processes import PYTHON, environment

HEADER = b"%%MatrixMarket matrix coordinate "
GOOD = HEADER + b"real general\n2 2 2\n1 1 1.0\n2 2 3.0\n"


def call(*arguments, stdout=subprocess.PIPE, folders=()):
    command = [*PYTHON, "-m", "gpusplu", *arguments]
    options = {"env": environment(*folders), "text": True, "errors": "surrogateescape"}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, **options)


BAD = {
    "billions of rows": HEADER + b"real general\n3000000000 3000000000 1\n1 1 1.0\n",
    "two billion rows": HEADER + b"real general\n2100000000 2100000000 1\n1 1 1.0\n",
    "billions of entries": HEADER + b"real general\n30 30 3000000000\n1 1 1.0\n",
    "rows times columns": b"%%MatrixMarket matrix array real general\n3000000000 3000000000\n1.0\n",
    "integer and a NUL": HEADER + b"integer general\n12 12 12\n" + b"1 1 2147483648\n" * 11 + b"12 12 \0\n",
    "empty": b"",
    "no Matrix Market": b"\0\xff\xfe",
}


@pytest.mark.parametrize("name", BAD)
def test_a_line_and_exit_2_whatever_is_in_the_file(name, tmp_path, monkeypatch):
    file = tmp_path / "bad.mtx"
    file.write_bytes(BAD[name])
    run = call("solve", str(file))
    assert run.returncode == 2, run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert run.stderr.startswith(f"gpusplu solve: {file}: ")
    assert not run.stdout


def test_a_reader_that_crashes(tmp_path, monkeypatch, capsys):
    from gpusplu import cli
    from gpusplu.cli import files

    (tmp_path / "reader.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    (tmp_path / "good.mtx").write_bytes(GOOD)
    monkeypatch.setattr(files, "__file__", str(tmp_path / "files.py"))
    assert cli.main(["solve", str(tmp_path / "good.mtx")]) == 2
    assert "SciPy's reader crashed on it (signal 11)" in capsys.readouterr().err


@pytest.mark.parametrize("name", [b"na\xffme.mtx", "größe.mtx".encode()])
def test_names_of_files_are_any_bytes(name, tmp_path):
    file, solution = tmp_path / os.fsdecode(name), tmp_path / os.fsdecode(b"x\xfe.mtx")
    file.write_bytes(GOOD)
    run = call("solve", str(file), "-o", str(solution))
    assert run.returncode == 0, run.stderr
    assert solution.stat().st_size > 0
    assert call("explain", str(file)).returncode == 0
    missing = call("solve", str(tmp_path / os.fsdecode(b"no\xff.mtx")))
    assert missing.returncode == 2
    assert missing.stderr.endswith("no\\udcff.mtx: no such file\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_an_output_that_is_full(tmp_path):
    (tmp_path / "good.mtx").write_bytes(GOOD)
    with open("/dev/full", "w") as full:
        run = call("explain", str(tmp_path / "good.mtx"), stdout=full)
    assert run.returncode == 2
    assert run.stderr == "gpusplu explain: cannot write the output: [Errno 28] No space left on device\n"


def test_an_output_that_nobody_reads(tmp_path):
    (tmp_path / "good.mtx").write_bytes(GOOD)
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        run = call("explain", str(tmp_path / "good.mtx"), stdout=closed)
    assert run.returncode == 141
    assert not run.stderr


def test_a_closed_standard_output():
    run = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *PYTHON, "-m", "gpusplu", "explain", "poisson:4x4"],
        env=environment(),
        text=True,
        capture_output=True,
    )
    assert run.returncode == 2
    assert run.stderr == "gpusplu explain: cannot write the output: standard output is closed\n"


#: Ctrl-C when a module is looked for, before anything of ours is imported.
PRESSED = """
import signal, sys

class Pressed:
    def find_spec(name, path=None, target=None):
        if name == "MODULE":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Pressed)
"""


@pytest.mark.parametrize("module", ["numpy", "gpusplu.cli", "scipy.sparse", "gpusplu.cli.solve"])
def test_ctrl_c_while_it_is_imported(module, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(PRESSED.replace("MODULE", module))
    run = call("--version", folders=[tmp_path])
    assert run.returncode == 130
    assert not run.stderr
    assert not run.stdout
