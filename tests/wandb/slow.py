"""A stand-in that answers late from the time it is told to, by `POST /_slow?seconds=5`: `slow.py SCRIPT PORT`."""

import sys
import time
from pathlib import Path

source = Path(sys.argv[1]).read_text(encoding="utf-8")
sys.argv = sys.argv[1:]
before, main = source.split('if __name__ == "__main__":')
exec(compile(before, sys.argv[0], "exec"))
_seconds = 0.0


class _Slow(Handler):  # type: ignore[name-defined, misc]  # noqa: F821
    def do_POST(self) -> None:  # noqa: N802
        global _seconds
        path, _, seconds = self.path.partition("?seconds=")
        if path == "/_slow":
            _seconds = float(seconds)
            self.body()
            self.reply({})
            return
        time.sleep(_seconds)
        super().do_POST()


Handler = _Slow
exec(compile('if __name__ == "__main__":' + main, sys.argv[0], "exec"))
