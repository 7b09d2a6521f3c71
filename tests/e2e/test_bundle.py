"""Bundles over real processes: collected from a stack, verified without one, and every flipped byte named."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from srbench_kit import archive
from srbench_kit.bundles import SEALS, open_bundle

sys.path.insert(0, str(Path(__file__).parent))
from whole_stack import clean_environment, manifest, mmlu_cases, running_stack, running_testbed, until

pytestmark = pytest.mark.e2e


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command without any service."""
    command = [sys.executable, "-m", "srbench_cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=clean_environment())


def keys(folder: Path) -> tuple[Path, Path]:
    """A fresh key pair as PEM files."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private, public = folder / "key.pem", folder / "key.pub.pem"
    private.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo))
    return private, public


@dataclass
class Made:
    """A bundle of a run with failures, a settled call and a recovery, its stack ended."""

    path: Path
    again: Path
    public_key: Path
    parent: str
    child: str
    report: dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("bundles")
    private, public = keys(folder)
    with running_testbed(folder) as bed, running_stack(folder / "store") as served:
        small = [one for one in bed.targets if one["id"] in ("small", "router")]
        bed.faults(
            {"fault": "http_status", "match": {"prompt_substring": "Question 001", "times": 2}, "params": {"status": 500}},
            {"fault": "close_mid_stream", "match": {"prompt_substring": "Question 002", "times": 1}, "params": {}},
        )
        parent = served.run(folder, manifest(mmlu_cases(4), small), "bundled")
        plan = folder / "plan.json"
        served.cli("recover-plan", parent, "--mode", "failed", "--output", str(plan))
        options = ("--plan", str(plan), "--idempotency-key", "child", "--acknowledge-new-attempt")
        child = served.cli("recover", parent, *options)["id"]
        until(lambda: served.get(f"/runs/{child}")["status"] == "completed")
        failed = next(call for call in served.get(f"/runs/{parent}/calls")["calls"] if call["status"] == "failed")
        usage = folder / "usage.json"
        usage.write_text(json.dumps({"usage": {"prompt_tokens": 7, "completion_tokens": 2}, "model": "small"}))
        served.cli("settle", parent, failed["id"], "--as", "happened", "--usage", str(usage))
        made = Made(folder / "one.tar", folder / "two.tar", public, parent, child, served.get(f"/runs/{parent}/report"))
        written = served.cli("bundle", parent, "--output", str(made.path), "--sign-key", str(private))
        assert written["signed"] is True
        assert served.cli("bundle", parent, "--output", str(made.again), "--sign-key", str(private))
        assert "OUTPUT_EXISTS" in served.cli("bundle", parent, "--output", str(made.path), code=2)
    return made


def test_a_bundle_is_the_same_bytes_each_time_and_a_plain_tar(made: Made) -> None:
    assert made.path.read_bytes() == made.again.read_bytes()
    with tarfile.open(made.path) as opened:
        names = opened.getnames()
        assert all(member.isreg() for member in opened.getmembers())
        for run in (made.parent, made.child):
            assert {f"runs/{run}/{name}" for name in ("run.json", "calls.jsonl", "outcomes.jsonl")} <= set(names)
        cases = opened.extractfile(f"runs/{made.parent}/cases.jsonl")
        assert cases is not None
        rows = [json.loads(line) for line in cases.read().splitlines()]
    assert [row["case_id"] for row in rows] == [f"mmlu-pro/{number}" for number in range(4)]
    assert all(len(row["sha256"]) == 64 for row in rows)
    assert b"A. one" not in b"".join(line.encode() for line in names)
    assert names[-3:] == list(SEALS)


def test_no_question_and_no_answer_is_in_a_bundle(made: Made) -> None:
    data = made.path.read_bytes()
    assert b"Question 001" not in data
    assert b'"answer":"A"' not in data.replace(b" ", b"")


def test_every_number_is_derived_again_without_a_service(made: Made) -> None:
    done = cli("verify", str(made.path), "--public-key", str(made.public_key))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    found = json.loads(done.stdout)
    assert found["equal"] is True
    assert found["problems"] == []
    assert found["signature"].startswith("right")
    parent, child = found["runs"]
    assert (parent["run_id"], child["run_id"]) == (made.parent, made.child)
    assert parent["streams_read"] == parent["call_count"]
    assert parent["call_values"]["cost_picodollars"]["compared"] == parent["call_count"]
    assert parent["call_values"]["settlement.cost_picodollars"] == {"compared": 1, "equal": 1}
    by_name = {row["name"]: row for row in parent["report_values"]}
    spent = by_name["report.summary.known_spend_usd"]
    assert spent["recorded"] == spent["derived"] == made.report["summary"]["known_spend_usd"]
    assert spent["rests_on"] == "raw streams"
    assert any(row["rests_on"] == "recorded grades" for row in parent["report_values"])
    assert any(name.startswith("merged-report.summary") for name in by_name)


def test_a_signature_by_another_key_is_refused(made: Made, tmp_path: Path) -> None:
    _, other = keys(tmp_path)
    done = cli("verify", str(made.path), "--public-key", str(other))
    assert done.returncode == 9
    assert [problem["member"] for problem in json.loads(done.stdout)["problems"]] == ["signature.json"]


def test_a_flipped_byte_in_any_member_is_found_and_named(made: Made, tmp_path: Path) -> None:
    data = made.path.read_bytes()
    path = tmp_path / "flipped.tar"
    with made.path.open("rb") as file:
        members = archive.read_members(file)
    assert len(members) > 15
    for member in members:
        for at in {member.offset, member.offset + member.size // 2, member.offset + member.size - 1}:
            flipped = bytearray(data)
            flipped[at] ^= 1
            path.write_bytes(flipped)
            with path.open("rb") as file:
                problems = open_bundle(file).problems
            assert [name for name, _ in problems] == [member.name], (member.name, at, problems)


def test_a_flipped_byte_outside_the_members_is_found_too(made: Made, tmp_path: Path) -> None:
    data = made.path.read_bytes()
    path = tmp_path / "flipped.tar"
    with made.path.open("rb") as file:
        members = archive.read_members(file)
    inside = {at for member in members for at in range(member.offset, member.offset + member.size)}
    outside = [at for at in range(len(data)) if at not in inside]
    for at in outside[::97]:
        flipped = bytearray(data)
        flipped[at] ^= 0x10
        path.write_bytes(flipped)
        with path.open("rb") as file:
            problems = open_bundle(file).problems
        assert [name for name, _ in problems] == ["the archive"], at


def test_a_number_that_was_changed_and_sealed_again_is_told_apart(made: Made, tmp_path: Path) -> None:
    """A forger who makes all digests right again cannot make the raw streams say something else."""
    from srbench_kit.bundles import seal

    path = tmp_path / "forged.tar"
    with made.path.open("rb") as file, path.open("wb") as out:
        opened = open_bundle(file)
        writer = archive.ArchiveWriter(out)
        for name in opened.members:
            content = opened.content(name)
            if name == f"runs/{made.child}/calls.jsonl":
                calls = [json.loads(line) for line in content.splitlines()]
                calls[0]["receipt"]["cost_picodollars"] = "1"
                content = b"".join(json.dumps(call).encode() + b"\n" for call in calls)
            if name == f"runs/{made.parent}/report.json":
                content = content.replace(b'"total":4', b'"total":5', 1)
            writer.add(name, content)
        seal(writer, None)
    done = cli("verify", str(path))
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr
    parent, child = json.loads(done.stdout)["runs"]
    differing = child["differing_call_values"]
    assert [(row["name"], row["recorded"]) for row in differing] == [("cost_picodollars", 1)]
    assert [row["recorded"] for row in parent["report_values"] if not row["equal"]] == [5]
