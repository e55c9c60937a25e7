"""What the tests of the command line share."""

import pytest

from etude.cli.main import main


def status(*words: str) -> int:
    """The exit status of `etude WORDS`, in this process."""
    with pytest.raises(SystemExit) as end:
        main(words)
    return int(end.value.code or 0)
