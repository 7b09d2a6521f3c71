# One line a target; CI runs the same ones.
PY := .venv/bin/python
.PHONY: help proto proto-check check test

help: ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

proto: ## Regenerates the committed stubs
	$(PY) -m grpc_tools.protoc -I proto --plugin=protoc-gen-mypy=.venv/bin/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=.venv/bin/protoc-gen-mypy_grpc --python_out=proto --grpc_python_out=proto --mypy_out=quiet:proto --mypy_grpc_out=quiet:proto proto/srbench/v1/*.proto
	$(PY) gateway/tools/proto_comments.py
