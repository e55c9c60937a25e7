"""`etude init`: write a folder to work in, with an example study, part and dataset."""

import shutil
import sys

from etude.cli.arguments import parse
from etude.errors import UserError
from etude.files import typed_path
from etude.paths import shipped

HELP = """usage: etude init DIR

Writes a folder to work in: a study of three arms, an attention variant, a
dataset, a test and a README. Existing files stay as they are.
"""


def main(words: list[str]) -> None:
    """Write the files that do not exist yet, and print what was written."""
    words = parse("init", HELP, words).words
    if len(words) != 1 or not words[0]:  # "" is no folder, but a variable that is not set
        raise UserError("etude init takes one folder, such as: etude init mine")
    if "=" in words[0]:
        raise UserError(f"etude init takes a folder and no override, not {words[0]!r}")
    folder, template = typed_path(words[0]), shipped("template")
    if blocked := next((path for path in (folder, *folder.parents) if path.exists() and not path.is_dir()), None):
        raise UserError(f"{blocked} is a file: name a folder to write to")
    for file in sorted(path for path in template.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        target = folder / file.relative_to(template)
        if target.exists():
            sys.stdout.write(f"kept   {target}\n")
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        except OSError as error:
            raise UserError(f"cannot write {target}: {error.strerror}; name another folder") from error
        sys.stdout.write(f"wrote  {target}\n")
    sys.stdout.write(f"{folder / 'README.md'} says how to go on\n")
