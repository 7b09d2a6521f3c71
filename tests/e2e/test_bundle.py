"""Bundles over real processes: collected from a stack, verified without one, and every flipped byte named."""

from __future__ import annotations

import json
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from srbench_kit import archive
from srbench_kit.bundles import SEALS, open_bundle, seal

from tests import commands
from tests.e2e.whole_stack import clean_environment, manifest, mmlu_cases, running_stack, running_testbed, until

# Whole stacks on a busy machine need their time; a hang still ends.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command without any service."""
    return commands.run("srbench_cli", *arguments, env=clean_environment())


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
    other: str
    answered: Path
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
        other = served.run(folder, manifest(mmlu_cases(4), small), "other")
        assert served.post(f"/runs/{other}/reconcile-usage", {}).status_code == 200
        report = served.get(f"/runs/{parent}/report")
        answered, cases = folder / "answered.tar", folder / "cases.jsonl"
        cases.write_text("".join(json.dumps(case) + "\n" for case in mmlu_cases(4)))
        served.cli("bundle", other, "--output", str(answered), "--with-answers", str(cases))
        cases.write_text(json.dumps(mmlu_cases(4)[0] | {"answer": "C"}) + "\n")
        wrong = ("--output", str(folder / "wrong.tar"), "--with-answers", str(cases))
        assert "NO_ANSWERS" in served.cli("bundle", other, *wrong, code=2)
        made = Made(folder / "one.tar", folder / "two.tar", public, parent, child, other, answered, report)
        for path in (made.path, made.again):
            written = served.cli("bundle", parent, other, "--output", str(path), "--sign-key", str(private))
            assert written["signed"] is True
        merged = served.cli("compare", parent, other, "--lineage")
        assert merged["merged_run_ids"] == [parent]
        assert merged["baseline_quality_complete"] is True
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
    runs = {run["run_id"]: run for run in found["runs"]}
    assert set(runs) == {made.parent, made.other, made.child}
    parent, other = runs[made.parent], runs[made.other]
    assert parent["streams_read"] == parent["call_count"]
    assert parent["call_values"]["cost_picodollars"]["compared"] == parent["call_count"]
    assert parent["call_values"]["settlement.cost_picodollars"] == {"compared": 1, "equal": 1}
    by_name = {row["name"]: row for row in parent["report_values"]}
    spent = by_name["report.summary.known_spend_usd"]
    assert spent["recorded"] == spent["derived"] == made.report["summary"]["known_spend_usd"]
    assert spent["rests_on"] == "raw streams"
    assert any(row["rests_on"] == "recorded grades" for row in parent["report_values"])
    assert any(name.startswith("merged-report.summary") for name in by_name)
    assert any(row["name"] == "comparison.comparisons[0].quality_delta" for row in found["comparison_values"])
    assert any("accounting_correction.id" in row["name"] for row in other["report_values"])


def test_with_answers_the_grades_are_made_again_too(made: Made) -> None:
    done = cli("verify", str(made.answered))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    runs = {run["run_id"]: run for run in json.loads(done.stdout)["runs"]}
    assert runs[made.other]["grades"] == {"compared": 8, "equal": 8, "not_made_again": 0, "differing": []}
    rests = {row["name"]: row["rests_on"] for row in runs[made.other]["report_values"]}
    assert rests["report.summary.targets[0:small].accuracy"] == "raw streams and answers"


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


JUNK = {
    "nothing": b"",
    "no JSON": b"\xff\x00{",
    "another value": b"[1, 2]\n",
    "an empty object": b"{}\n",
    "depth": b"[" * 100_000,
    "numbers": b'{"sequence": "99999999999999999999"}\n',
}


@pytest.mark.parametrize("junk", list(JUNK))
def test_a_sealed_bundle_of_junk_is_refused_with_the_members_name(made: Made, tmp_path: Path, junk: str) -> None:
    from srbench_accounting.verify import verify

    with made.path.open("rb") as file:
        opened = open_bundle(file)
        contents = {name: opened.content(name) for name in opened.members}
    one = next(name for name in contents if name.startswith("evidence/"))
    own = [name for name in contents if name.startswith(f"runs/{made.parent}/")]
    for name in ("bundle.json", "comparison.json", one, *own):
        path = tmp_path / "junk.tar"
        with path.open("wb") as out:
            writer = archive.ArchiveWriter(out)
            for member, content in contents.items():
                writer.add(member, JUNK[junk] if member == name else content)
            seal(writer, None)
        found = verify(path, None)
        problems: Any = found["problems"]
        assert not found["equal"], name
        # Nothing and an empty object are sound contents: the figures differ instead, and what hangs on the rows is named.
        named = {problem["member"] for problem in problems}
        # So are other values where figures stand: they differ, and no member is damaged.
        figures = not problems and name.endswith(("comparison.json", "report.json"))
        assert name in named or figures or junk in ("nothing", "an empty object"), (name, problems)
        path.unlink()


def test_a_bundle_without_one_of_its_members_is_refused(made: Made, tmp_path: Path) -> None:
    from srbench_accounting.verify import verify

    with made.path.open("rb") as file:
        opened = open_bundle(file)
        contents = {name: opened.content(name) for name in opened.members}
    missing = [f"runs/{made.parent}/{name}" for name in ("run.json", "cases.jsonl", "calls.jsonl", "outcomes.jsonl")]
    missing += [f"runs/{made.parent}/report.json", next(name for name in contents if name.startswith("evidence/"))]
    for name in missing:
        path = tmp_path / f"without-{len(name)}.tar"
        with path.open("wb") as out:
            writer = archive.ArchiveWriter(out)
            for member, content in contents.items():
                if member != name:
                    writer.add(member, content)
            seal(writer, None)
        problems: Any = verify(path, None)["problems"]
        assert name in {problem["member"] for problem in problems}, (name, problems)
        path.unlink()


def test_an_evidence_that_unpacks_without_end_is_refused(made: Made, tmp_path: Path) -> None:
    import hashlib

    import srbench_accounting.bundle_reading as reading
    import zstandard
    from srbench_accounting.verify import verify

    bomb = zstandard.compress(bytes(64 * 1024 * 1024))
    sha256 = hashlib.sha256(bomb).hexdigest()
    with made.path.open("rb") as file:
        opened = open_bundle(file)
        contents = {name: opened.content(name) for name in opened.members}
    name = f"runs/{made.other}/calls.jsonl"
    old = json.loads(contents[name].splitlines()[0])["receipt"]["evidence_sha256"]
    contents[name] = contents[name].replace(old.encode(), sha256.encode())
    contents[f"evidence/{sha256}.zst"] = bomb
    path = tmp_path / "bomb.tar"
    with path.open("wb") as out, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "MAX_EVIDENCE_BYTES", 1024 * 1024)
        writer = archive.ArchiveWriter(out)
        for member, content in contents.items():
            writer.add(member, content)
        seal(writer, None)
        out.flush()
        problems: Any = verify(path, None)["problems"]
    assert f"evidence/{sha256}.zst" in {problem["member"] for problem in problems}


def test_a_number_that_was_changed_and_sealed_again_is_told_apart(made: Made, tmp_path: Path) -> None:
    """A forger who makes all digests right again cannot make the raw streams say something else."""
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
    runs = {run["run_id"]: run for run in json.loads(done.stdout)["runs"]}
    parent, differing = runs[made.parent], runs[made.child]["differing_call_values"]
    assert [(row["name"], row["recorded"]) for row in differing] == [("cost_picodollars", 1)]
    assert [row["recorded"] for row in parent["report_values"] if not row["equal"]] == [5]
