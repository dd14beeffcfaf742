"""Fixtures of the Python tests, and the summary line of .ci/run."""

import os
import random
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "python"))

import attend  # noqa: E402


def reversed_letters(count: int, seed: int):
    """Lines of two to four letters, and the same in capitals from the last to the first."""
    draw = random.Random(seed)
    sources = [[draw.choice("abcdef") for _ in range(draw.randint(1, 4))] for _ in range(count)]
    return [" ".join(s) for s in sources], [" ".join(reversed(s)).upper() for s in sources]


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    """A small model that reverses letters."""
    path = tmp_path_factory.mktemp("model") / "letters.safetensors"
    attend.train(path, *reversed_letters(400, 5), embedding=16, hidden=24, attention=16, maxout=16, batch_size=20,
                 learning_rate=0.01, updates=400)  # fmt: skip
    return path


@pytest.fixture
def command() -> str:
    """The command of the same build as the library."""
    path = Path(attend._abi.library._name).parent / "attend"
    if not os.access(path, os.X_OK):
        pytest.skip(f"there is no command beside the library: {path}")
    return str(path)


def pytest_unconfigure(config):
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    count = {kind: len(reporter.stats.get(kind, [])) for kind in ("passed", "failed", "error", "skipped")}
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"{count['passed']} passed, {count['failed'] + count['error']} failed{skipped}")
