"""Writes the API document of this checkout, from which the Dashboard's types are made. No server is needed.

Usage: python gateway/tools/openapi_document.py PATH
"""

from __future__ import annotations

import sys
from pathlib import Path

from srbench_gateway import openapi
from srbench_gateway.app import TABLE


def main() -> None:
    """Writes the document to the path given."""
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(openapi.encoded(TABLE))


if __name__ == "__main__":
    main()
