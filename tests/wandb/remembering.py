"""A stand-in that gives back, as W&B does, the config that the client had sent of a run: `remembering.py SCRIPT PORT`.

Another gives an empty one back.
"""

import sys
from pathlib import Path

source = Path(sys.argv[1]).read_text(encoding="utf-8")
sys.argv = sys.argv[1:]
before, main = source.split('if __name__ == "__main__":')
exec(compile(before, sys.argv[0], "exec"))
_forgetful = bucket  # noqa: F821


def bucket(name, entity, project, sweep):  # type: ignore[no-untyped-def]
    configs = [said["config"] for said in RUNS[name]["upserts"] if "config" in said]  # noqa: F821
    return _forgetful(name, entity, project, sweep) | {"config": configs[-1] if configs else "{}"}


exec(compile('if __name__ == "__main__":' + main, sys.argv[0], "exec"))
