"""Print the kernels that fits of every kind compile although they should have been compiled before.

python scripts/count_compilations.py [part of a name ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.runtime.everything import cases, compiled_by


def main() -> None:
    total, parts = 0, sys.argv[1:]
    for title, run in cases():
        if parts and not any(part in title for part in parts):
            continue
        try:
            found = compiled_by(run)
        except Exception as error:
            print(f"{title}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        total += len(found)
        for kernel in found:
            print(f"{title}: {kernel}", flush=True)
    print(f"{total} kernels were compiled.")


if __name__ == "__main__":
    main()
