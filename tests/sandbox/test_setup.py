"""What `setup --build-sandbox` and `setup --install` leave behind, with a real engine and real packages."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from srbench_grader import install
from srbench_grader.sandbox import build, bwrap, libraries
from srbench_grader.sandbox.docker import Docker
from srbench_grader.sandbox.limits import Limits
from srbench_grader.sandbox.values import Program
from srbench_kit.errors import SrBenchError


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that everybody may enter, as a service's would be; pytest keeps its own folders to their owner."""
    with tempfile.TemporaryDirectory(prefix="setup-") as name:
        Path(name).chmod(0o755)
        monkeypatch.setenv("SR_BENCH_HOME", name)
        yield Path(name)


def test_the_image_is_built_tried_offline_and_named_by_its_receipt(tmp_path: Path) -> None:
    image = build.build(build.BASE, tmp_path)
    receipt = json.loads((tmp_path / "manifest.json").read_text())
    inspected = subprocess.run(["docker", "image", "inspect", image, build.BASE], capture_output=True, check=True)
    built, base = json.loads(inspected.stdout)
    assert (tmp_path / "image-id").read_text().strip() == image == receipt["sandbox_image"] == built["Id"]
    assert receipt["base_image_id"] == base["Id"]
    assert built["RootFS"]["Layers"][: len(base["RootFS"]["Layers"])] == base["RootFS"]["Layers"]
    assert built["Config"]["User"] == "65533:65533"
    assert receipt["installed"]["numpy"] == "1.26.4"
    pinned = {line.split("==")[0] for line in libraries.requirements().splitlines() if "==" in line}
    assert pinned - {"tzdata"} <= receipt["installed"].keys()
    text = (tmp_path / "Dockerfile").read_bytes()
    assert receipt["dockerfile_sha256"] == hashlib.sha256(text).hexdigest()
    said = Docker(image).start(Program(python=("-I", "-c", "import h5py; print(h5py.__version__)")), Limits()).finish()
    assert said.stdout == b"3.11.0\n"


def test_a_base_that_is_not_there_is_named_with_what_mends_it(tmp_path: Path) -> None:
    with pytest.raises(SrBenchError) as caught:
        build.build("127.0.0.1:1/no-such-image:1", tmp_path)
    assert caught.value.reason == "BUILD_FAILED"
    assert "SR_BENCH_SANDBOX_BASE" in caught.value.message
    assert not (tmp_path / "image-id").exists()


def test_the_environment_is_made_once_and_its_receipt_lists_what_is_in_it(home: Path) -> None:
    said: list[str] = []
    install.environment(said.append)
    folder = home / "sandbox" / "venv"
    receipt = (folder / install.RECEIPT).read_text()
    assert receipt.startswith(f"# {libraries.requirements_sha256()}\ncontourpy==")
    assert "scipy==1.13.1\n" in receipt
    listed = libraries.listed(bwrap.Bwrap(str(folder / "bin" / "python")))
    assert receipt.split("\n", 1)[1] == "".join(f"{name}=={version}\n" for name, version in listed.items())
    made = (folder / install.RECEIPT).stat().st_mtime_ns
    install.environment(said.append)
    assert said[1].endswith("has the pinned libraries already")
    assert (folder / install.RECEIPT).stat().st_mtime_ns == made
    assert [path.name for path in (home / "sandbox").iterdir()] == ["venv"]


def test_an_index_that_does_not_answer_leaves_nothing_half_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/simple")
    for name in ("UV_FIND_LINKS", "UV_EXTRA_INDEX_URL", "UV_INDEX", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_NO_CACHE", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(SrBenchError) as caught:
        install.environment(lambda _said: None)
    assert caught.value.reason == "INSTALL_FAILED"
    assert "package index" in caught.value.message
    assert list((home / "sandbox").iterdir()) == []
