"""Writes the comments of the protos as JSON, for the API document: descriptors at run time have none.

Usage: `python gateway/tools/proto_comments.py`, from the root of the repository; `make proto` calls it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

ROOT = Path(__file__).parent.parent.parent
PROTO = ROOT / "proto"
TARGET = ROOT / "gateway" / "srbench_gateway" / "proto_comments.json"
# Field numbers within FileDescriptorProto and DescriptorProto, of which source locations are made.
_MESSAGE, _FIELD = 4, 2


def descriptors() -> descriptor_pb2.FileDescriptorSet:
    """The protos with their comments."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        files = sorted(str(path.relative_to(PROTO)) for path in (PROTO / "srbench" / "v1").glob("*.proto"))
        arguments = ["protoc", f"-I{PROTO}", f"-I{Path(protoc.__file__).parent / '_proto'}"]
        code = protoc.main([*arguments, "--include_source_info", f"--descriptor_set_out={out}", *files])
        if code:
            raise SystemExit(code)
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


def comments(found: descriptor_pb2.FileDescriptorSet) -> dict[str, str]:
    """Comment by full name, of messages (`srbench.v1.Run`) and their fields (`srbench.v1.Run.owner`)."""
    texts: dict[str, str] = {}
    for file in found.file:
        for location in file.source_code_info.location:
            path, text = list(location.path), " ".join(location.leading_comments.split())
            if not text or path[0] != _MESSAGE:
                continue
            message = file.message_type[path[1]]
            if len(path) == 2:
                texts[f"{file.package}.{message.name}"] = text
            elif len(path) == 4 and path[2] == _FIELD:
                texts[f"{file.package}.{message.name}.{message.field[path[3]].name}"] = text
    return texts


if __name__ == "__main__":
    TARGET.write_text(json.dumps(comments(descriptors()), indent=0, sort_keys=True) + "\n")
