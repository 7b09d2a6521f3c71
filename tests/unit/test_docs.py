"""What the pages name is there: files, commands with their options, targets of make, routes, and words of the code."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
from functools import cache
from itertools import takewhile
from pathlib import Path

import click
import pytest
from srbench_cli.main import benchmark
from srbench_gateway.app import TABLE

ROOT = Path(__file__).parents[2]
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
).stdout.splitlines()
PAGES = [name for name in TRACKED if name.endswith(".md")]
FOLDERS = {str(folder) for name in TRACKED for folder in Path(name).parents}
SOURCES = (".py", ".proto", ".ts", ".tsx", ".toml", ".yaml", ".json", ".sh", "Dockerfile", "Makefile")
# Made by commands or by the reader, or not ours.
ELSEWHERE = {
    "deploy/secrets",
    "gateway/dashboard/dist",
    "targets.yaml",
    "plan.yaml",
    "RLIMIT_NPROC",
    "simulator_failed",
    "sr_bench",
}
FILE = re.compile(r"[\w.{},*/-]+\.(?:py|md|proto|tsx?|yaml|toml)")
PLACE = re.compile(r"(?:docs|tests|services|deploy|tools|bench|gateway|cli|proto|examples|changelog\.d)/[\w./*{},-]+")
WORD = re.compile(r"[A-Za-z]\w*_\w*[A-Za-z0-9]")


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text()


def quoted(page: str) -> list[str]:
    """What stands between backticks in running text, also over the end of a line."""
    running = re.sub(r"(?m)^ {4,}\S.*$|^```(?:.|\n)*?^```$", "", text_of(page))
    return [" ".join(found.split()) for found in re.findall(r"`([^`]+)`", running)]


def lines_of_code(page: str) -> list[str]:
    """Lines of blocks, those that end in a backslash joined, comments taken off."""
    block = "\n".join(re.findall(r"(?m)^ {4,}(\S.*)$", text_of(page)))
    return [line.split(" #")[0].rstrip(" &") for line in block.replace("\\\n", " ").splitlines()]


def expanded(name: str) -> list[str]:
    found = re.fullmatch(r"(.*)\{([^}]*)\}(.*)", name)
    return [found[1] + part + found[3] for part in found[2].split(",")] if found else [name]


def is_there(name: str) -> bool:
    """Whether a tracked file or folder has this name, or ends in it: pages leave out where a package lies."""
    pattern = "[^/]*".join(map(re.escape, name.rstrip("/").split("*")))
    return any(re.fullmatch(f"(?:.*/)?{pattern}", known) for known in (*TRACKED, *FOLDERS))


@cache
def words_of_the_code() -> frozenset[str]:
    own = str(Path(__file__).relative_to(ROOT))
    files = [name for name in TRACKED if name.endswith(SOURCES) or name.startswith("tools/")]
    texts = [(ROOT / name).read_text() for name in files if name != own and (ROOT / name).is_file()]
    return frozenset(re.findall(r"\w+", "\n".join(texts))) | {Path(name).stem for name in TRACKED}


@pytest.mark.parametrize("page", PAGES)
def test_files_and_folders_that_a_page_names_are_there(page: str) -> None:
    named = [token for token in quoted(page) if FILE.fullmatch(token) or PLACE.fullmatch(token)]
    linked = [target for target in re.findall(r"\]\(([^)#:]+)\)", text_of(page)) if "/" in target or target.endswith(".md")]
    missing = [name for token in named + linked for name in expanded(token) if not is_there(name)]
    assert set(missing) <= ELSEWHERE


def test_the_way_of_one_answer_names_files_of_the_packages_it_says() -> None:
    way = text_of("ARCHITECTURE.md").split("## One answer", 1)[1].split("\n## ", 1)[0]
    package, wrong, count = "", [], 0
    for bold, file in re.findall(r"\*\*(\w+)\*\*|`([\w/]+\.py)`", way):
        if bold:
            package = bold
            continue
        count += 1
        if not any(name.endswith(f"/srbench_{package}/{file}") for name in TRACKED):
            wrong.append((package, file))
    assert count > 40
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_words_of_the_code_that_a_page_quotes_are_in_the_code(page: str) -> None:
    words = {word for token in quoted(page) if not FILE.fullmatch(token) for word in WORD.findall(token)}
    words = {word for word in words if f"{word}_*" not in text_of(page)}
    # The metrics library puts the ending to a counter's name.
    known = words_of_the_code()
    assert {word for word in words if word not in known and word.removesuffix("_total") not in known} <= ELSEWHERE


def commands() -> list[tuple[str, str]]:
    """(page, command line) for every `sr-bench …` and `vllm-sr benchmark …`, without what stands before it in its line."""
    start = re.compile(r"(?:^|.*[ /])(?:sr-bench|vllm-sr benchmark) (?=[a-z-])(.*)")
    begins = ("sr-bench ", "vllm-sr benchmark ", ".venv/bin/sr-bench ")
    lines = [(page, line) for page in PAGES for line in lines_of_code(page) if "kubectl" not in line]
    lines += [(page, token) for page in PAGES for token in quoted(page) if token.startswith(begins)]
    found = [(page, match[1]) for page, line in lines if (match := start.fullmatch(line)) and " on " not in match[1]]
    return sorted(set(found))


def options_of(command: click.Command) -> dict[str, bool]:
    """Names of options, and whether a value follows."""
    found = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    named = {name: not option.is_flag for option in found for name in (*option.opts, *option.secondary_opts)}
    return {"--help": False, **named}


@pytest.mark.parametrize(("page", "line"), commands())
def test_commands_that_a_page_names_exist_with_their_options(page: str, line: str) -> None:
    command: click.Command = benchmark
    options = options_of(command)
    words = iter(shlex.split(re.sub(r"[][…]", "", line)))
    for word in words:
        if word.startswith("-"):
            name, _, value = word.partition("=")
            assert name in options, f"{line}: no option {name}"
            if options[name] and not value:
                next(words, None)
        elif isinstance(command, click.Group):
            inner = command.get_command(click.Context(command), word)
            assert inner is not None, f"{line}: no command {word}"
            command = inner
            options |= options_of(command)


@pytest.mark.parametrize("page", PAGES)
def test_modules_that_a_page_runs_exist_and_know_their_options(page: str) -> None:
    for line in (*lines_of_code(page), *quoted(page)):
        for module, rest in re.findall(r"python3? -m (srbench_[\w.]+)(.*)", line):
            found = importlib.util.find_spec(module)
            assert found is not None, f"no module {module}"
            if found.submodule_search_locations:
                found = importlib.util.find_spec(f"{module}.__main__")
            assert found is not None, f"{module} cannot be run"
            assert found.origin is not None
            source = Path(found.origin).read_text()
            options = takewhile(lambda word: word not in ("&&", "|"), rest.split())
            assert [word for word in options if word.startswith("--") and f'"{word}"' not in source] == []


def test_targets_of_make_that_pages_name_exist() -> None:
    known = set(re.findall(r"(?m)^([a-z0-9-]+):", text_of("Makefile")))
    lines = [line for page in PAGES for line in (*lines_of_code(page), *quoted(page))]
    named = {word for line in lines if line.startswith("make ") for word in line.split()[1:]}
    assert {"demo", "install", "test-fleet"} <= named
    assert named <= known


def test_routes_that_pages_name_exist() -> None:
    known = {(route.method, re.sub(r"\{\w+\}", "{}", route.path)) for route in TABLE.routes}
    named = {
        (page, method, re.sub(r"\{\w+\}", "{}", path.rstrip(".,;")))
        for page in PAGES
        if page != "docs/testbed.md"
        for method, path in re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?\s]+)`?", text_of(page))
    }
    assert {row for row in named if row[1:] not in known and not row[2].startswith("/api/v1/")} == set()


def test_a_decision_is_a_page_named_and_headed_by_its_day() -> None:
    pages = [Path(page) for page in PAGES if page.startswith("docs/decisions/")]
    assert pages
    for page in pages:
        day = page.name[:10]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d-[a-z0-9-]+\.md", page.name), page
        assert text_of(str(page)).startswith(f"# {day}: "), f"{page}: expected a first line `# {day}: …`"
