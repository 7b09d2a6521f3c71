"""Runs one Terminal-Bench task with Harbor: its container, our agent, its verifier. `terminal.py INPUT RESULT`.

Runs in the harness's interpreter: Harbor and the standard library, nothing of sr-bench. See `docs/harnesses.md`.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import terminal_agent
import verifier_report
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.environments.docker.docker import DockerEnvironment
from harbor.models.task.config import EnvironmentConfig as TaskEnvironment
from harbor.models.task.config import NetworkMode
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig, VerifierConfig
from harbor.trial.trial import Trial

SCHEMA = "sr-bench-harness-result-v1"
PULL_S = 1800
# Of the time of the case this is kept for taking the container down.
CLOSING_S = 10.0
_PINNED = re.compile(r"(?:\S+@)?sha256:[0-9a-f]{64}\Z")
_REASONS = {
    "ModelFailed": "model_failed",
    "RewardFileNotFoundError": "reward_missing",
    "RewardFileEmptyError": "reward_missing",
    "VerifierOutputParseError": "reward_malformed",
    "VerifierTimeoutError": "verifier_timeout",
    "EnvironmentStartTimeoutError": "container_timeout",
}


class Failed(Exception):
    """Why there is no reward: a stable reason and a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class TaskContainer(DockerEnvironment):
    """Harbor's Docker environment with the image that was decided on, our labels, and a task without internet kept off
    every network: `network_mode: none` needs no privileged container beside it, and task and verifier have one policy."""

    def __init__(self, *, task_env_config: TaskEnvironment, image: str | None, **kwargs: Any) -> None:
        super().__init__(task_env_config=task_env_config.model_copy(update={"docker_image": image}), **kwargs)

    @staticmethod
    def _requires_egress_control(**_policies: Any) -> bool:
        return False

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return super().capabilities.model_copy(update={"disable_internet": True})


def tree_sha256(folder: Path) -> str:
    """SHA-256 over the paths and digests of all regular files, as the dataset has it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    listed = {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    text = json.dumps(listed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def task_folder(given: dict[str, Any]) -> Path:
    """The task's folder, checked against the frozen digest. Raises: `Failed`."""
    folder = Path(given["root"]) / "tasks" / str(given["task"]["task"])
    if not (folder / "task.toml").is_file():
        raise Failed("task_missing", f"there is no task {folder}")
    if not (folder / "tests/test.sh").is_file():
        raise Failed("task_incomplete", f"the task {folder} has no tests/test.sh; it could not be graded")
    found, wanted = tree_sha256(folder), given["task"]["tree_sha256"]
    if found != wanted:
        raise Failed("task_changed", f"the task {folder} has the digest {found[:12]}, the plan's is {wanted[:12]}")
    return folder


def image_of(folder: Path, named: str | None, options: dict[str, Any]) -> tuple[str | None, str]:
    """The image to start, `None` for one that is built from the task's Dockerfile, and where it comes from.

    The option `task_images` decides first; then the image that the task names, if it is here or can be pulled; then the
    Dockerfile. Raises: `Failed`.
    """
    pinned = (options.get("task_images") or {}).get(named)
    if pinned is not None:
        if not isinstance(pinned, str) or not _PINNED.match(pinned):
            raise Failed("image_not_pinned", f"task_images names {pinned!r} for {named}; expected an image by its digest")
        if not _inspected(pinned) and not _pulled(pinned):
            raise Failed("image_missing", f"the image {pinned} is not here and cannot be pulled")
        return pinned, "pinned"
    if named and (_inspected(named) or _pulled(named)):
        return _inspected(named), "resolved"
    if (folder / "environment/Dockerfile").is_file():
        return None, "built"
    raise Failed("image_missing", f"the image {named} is not here and cannot be pulled, and the task has no Dockerfile")


def _inspected(image: str) -> str:
    """The id of an image of this machine; empty when it is not here."""
    done = subprocess.run(["docker", "image", "inspect", "-f", "{{.Id}}", image], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _pulled(image: str) -> bool:
    return subprocess.run(["docker", "pull", "-q", image], capture_output=True, timeout=PULL_S).returncode == 0


def compose_overlay(task: dict[str, Any], labels: dict[str, str], folder: Path, *, built: bool) -> Path:
    """A compose file with our labels on the container, its network and an image that is built for it, and no network where
    the task allows none."""
    # Nothing in a container that is taken down has anything left to say.
    main: dict[str, Any] = {"labels": labels, "init": True, "stop_grace_period": "1s"}
    overlay: dict[str, Any] = {"services": {"main": main}}
    if built:
        main["build"] = {"labels": labels}
    if task["environment"].get("allow_internet") is False:
        main["network_mode"] = "none"
    else:
        overlay["networks"] = {"default": {"labels": labels}}
    path = folder / "sr-bench-compose.json"
    path.write_text(json.dumps(overlay))
    return path


def trial_config(given: dict[str, Any], folder: Path, task: dict[str, Any], image: str | None, until: float) -> TrialConfig:
    """Harbor's configuration of the one trial."""
    artifacts = Path(given["artifacts"])
    verifier_s = float(task.get("verifier", {}).get("timeout_sec") or 600.0)
    agent_s = float(task.get("agent", {}).get("timeout_sec") or 600.0)
    left_s = until - time.time() - verifier_s
    most = int(given["limits"]["max_calls"])
    steps = int(given["options"].get("max_steps") or most)
    return TrialConfig(
        task=TaskConfig(path=folder),
        trial_name=f"sr-bench-{hashlib.sha256(json.dumps(given['labels'], sort_keys=True).encode()).hexdigest()[:24]}",
        trials_dir=artifacts / "trial",
        agent=AgentConfig(
            import_path="terminal_agent:TerminalAgent",
            # The agent ends by its own clock, so that the container is verified as it stands then.
            override_timeout_sec=agent_s + 60,
            kwargs={
                "trajectory": str(artifacts / "trajectory.jsonl"),
                "deadline": time.time() + min(agent_s, max(left_s, 1.0)),
                "max_steps": min(steps, most),
            },
        ),
        environment=EnvironmentConfig(
            import_path="__main__:TaskContainer",
            extra_docker_compose=[compose_overlay(task, given["labels"], artifacts, built=image is None)],
            kwargs={"image": image},
            override_gpus=0,
        ),
        verifier=VerifierConfig(override_timeout_sec=verifier_s),
    )


def reward_of(rewards: dict[str, Any] | None) -> float:
    """The reward: the one of that name, or the only one. Raises: `Failed`."""
    found = rewards or {}
    value = found.get("reward", next(iter(found.values())) if len(found) == 1 else None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Failed("reward_malformed", f"the verifier gave {json.dumps(found)[:200]}; expected one reward")
    return float(value)


async def run(given: dict[str, Any]) -> dict[str, Any]:
    """The result of the trial. Raises: `Failed`."""
    folder = task_folder(given)
    task = tomllib.loads((folder / "task.toml").read_text())
    image, source = await asyncio.to_thread(image_of, folder, task["environment"].get("docker_image"), given["options"])
    until = float(given["limits"]["deadline"]) - CLOSING_S
    terminal_agent.ENDPOINT.update(given["endpoints"]["subject"])
    trial = await Trial.create(trial_config(given, folder, task, image, until))
    found = await trial.run()
    agent = terminal_agent.LAST[-1] if terminal_agent.LAST else None
    ending = agent.ending if agent else ""
    if found.verifier_result is None or (found.exception_info is not None and ending == ""):
        raised = found.exception_info
        kind = raised.exception_type if raised else "no verifier result"
        message = f"{kind}: {raised.exception_message if raised else ''}".strip()
        raise Failed(_REASONS.get(kind, "harness_error"), message[-1000:])
    reward = reward_of(found.verifier_result.rewards)
    unseen = "" if reward else verifier_report.never_ran((folder / "tests/test.sh").read_text(), trial.paths.verifier_dir)
    if unseen:
        raise Failed("verifier_failed", unseen)
    return {
        "status": "completed",
        "reward": reward,
        "reason": ending,
        "trajectory": "trajectory.jsonl",
        "versions": {
            "harbor": importlib.metadata.version("harbor"),
            "agent": f"{terminal_agent.NAME} {terminal_agent.VERSION}",
            "image": image or f"Dockerfile of tree {given['task']['tree_sha256']}",
        },
        "details": {
            "image_source": source,
            "steps": agent.steps if agent else 0,
            "network": "none" if task["environment"].get("allow_internet") is False else NetworkMode.PUBLIC.value,
        },
    }


def main() -> None:
    """Reads the input, runs the trial, writes the result."""
    given = json.loads(Path(sys.argv[1]).read_text())
    try:
        result = asyncio.run(run(given))
    except Failed as error:
        result = {"status": "failed", "reward": None, "reason": error.reason, "message": str(error)}
    Path(sys.argv[2]).write_text(json.dumps({"schema": SCHEMA, **result}))


if __name__ == "__main__":
    main()
