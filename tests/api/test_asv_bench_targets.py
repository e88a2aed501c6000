"""The summary of the circuit benchmark: what is reached and what is missed."""

import pytest

from asv_bench.report import targets


@pytest.fixture
def summary():
    """`targets.summary` as one text."""
    return lambda results: "\n".join(targets.summary(results))


def phases(step, **more):
    return {"analyze": 0.01, "refactor": step / 2, "step": step, "step_wall": 1.2 * step, "flops": 2e6, **more}


GOOD = {
    "memplus": {
        "cudss": phases(8e-4),
        "cpu": phases(7e-4),
        "cpu_device": phases(8e-4),
        "supernodal": phases(1.3e-4),
        "glu": phases(4e-4),
        "auto": phases(1.3e-4),
        "auto_host": phases(2e-4),
    },
    "add20_seq": {"auto": phases(1e-4, sequence_error=1e-15), "cudss": phases(8e-4, sequence_error=1e-3)},
}


def changed(solver, **more):
    return {**GOOD, "memplus": {**GOOD["memplus"], solver: {**GOOD["memplus"][solver], **more}}}


def test_all_reached(summary):
    text = summary(GOOD)
    assert "MISSED" not in text
    assert "on the device: 7.02x" in text
    assert "glu beside its published form, refactor: at least 18.50x" in text


@pytest.mark.parametrize(
    ("results", "line"),
    [
        (changed("cudss", step=1e-4), "auto beside cuDSS, refactor + solve on the device"),
        (changed("cpu", step_wall=1e-4), "auto_host over the better of cuDSS and cpu"),
        (changed("cpu_device", step_wall=1e-5), "auto over the better of cuDSS and cpu_device"),
        (changed("supernodal", step_wall=1e-4), "auto within 15% of the best of ours"),
        (changed("auto", step=1e-3), "auto beside CKTSO with 16 threads (step,"),
        (changed("glu", refactor=1e-3), "glu beside its published form"),
        (changed("auto", step_wall=2e-4), "a Newton step of memplus"),
        ({"add20_seq": {"auto": phases(1e-4, sequence_error=2e-12)}}, "sequences, worst backward error"),
    ],
)
def test_missed(summary, results, line):
    (found,) = [text for text in summary(results).splitlines() if text.startswith(line)]
    assert "MISSED" in found
