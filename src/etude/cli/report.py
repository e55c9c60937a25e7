"""`etude report`: show the table of a study in the terminal, or write it as Markdown, LaTeX, SVG or HTML."""

import glob
import math
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from rich.cells import cell_len

from etude.cli.arguments import Arguments, parse
from etude.config.quoting import quote
from etude.errors import UserError
from etude.files import typed_path, write_or_print, write_or_print_page
from etude.report import (
    Results,
    confirmation_table,
    make_report,
    results_of_csv,
    results_of_runs,
    search_table,
    together,
)
from etude.report import results as find_results
from etude.report.render.latex import Notes, latex
from etude.report.render.rows import Rows
from etude.report.render.terminal import RenderedTable, markdown
from etude.report.search import search
from etude.report.searched import Searched, read_search
from etude.search import sweep_file
from etude.store.metrics_file import to_number
from etude.store.records import studies_in
from etude.study.metrics import Metric, typed_metric
from etude.study.study import load_study, no_such_study, study_names
from etude.terminal import PIPE_WIDTH, console

if TYPE_CHECKING:
    from etude.report.ladder import Ladder

HELP = """usage: etude report STUDY ... [key=value ...] [--html FILE] [--serve]
                    [--markdown FILE] [--latex FILE] [--svg FILE] ...
       etude report 'runs/STUDY/A*' ... [key=value ...] [--html FILE] ...
       etude report SWEEP.yaml [key=value ...] [--html FILE] [--markdown FILE] ...
       etude report runs/STUDY/NAME.journal [--html FILE] ...
       etude report NAME --from FILE.csv [--baseline ARM] [--metric NAME:lower]
       etude report STUDY --ladder [--target COMPUTE] ...
       etude report --from FILE.csv --ladder [--target COMPUTE] ...

The table of a study, with the paper's numbers. Runs of different settings never
share a table. It shows the setting with the most arms, and of equals the one
with the fewest overrides, then the newest; key=value selects another, such as
scale=small or data=multi30k_en_de. seed=11,12,13 leaves out other seeds. Of an
arm that was run before and after an edit of the study or its text, it shows the
runs with today's values, and of these the newest; text=DIGITS (of text.txt)
selects a text. Of several seeds it gives intervals and tests: a star says that
an arm differs from the baseline by more than seeds do, and in BLEU also by more
than test sentences do.

Of several studies: one table if they share a setting, in which an arm that two
of them have stands once, or else a table each. Runs that were typed one by one
are those of `single`; its arms, and those of directories, are what differs.

Of a sweep file: what it tried, the best first, by the file's `metric` or else
by validation perplexity, and for a random search what so many trials can be
expected to find. Type the words that you typed after `etude sweep`. Of a search
(or its journal), while it runs, too: also the trials that were paused or pruned,
at which step, and how much of the best one's score is luck; with --html, also
how it went, what matters most, and learning curves.

--from FILE.csv reads a CSV in place of runs: one that `etude results` wrote, or
one of any trainer's, with the columns arm, seed and a metric. NAME may be that
of a study, which then has its arms and metrics; else the first arm is the
baseline, or the one that --baseline names.

--ladder predicts the differences between arms at a larger size from several
small ones: of the ladder of a study (ladder: in study.yaml; etude sweep STUDY
ladder=true), or the runs of a CSV with the columns arm, seed, parameters, tokens and
a metric, and rung where tokens do not tell the sizes apart. It predicts the two
largest sizes from the others first, and shows how often it was right.

  --baseline ARM     compare the other arms with this one
  runs_dir=DIR       the folder of runs
  --from PLACE       the runs in a CSV, or on Weights & Biases with
                     wandb:[ENTITY/]PROJECT, instead of those in runs_dir
  --metric LIST      columns to compare, and which way they are better, such as
                     test_loss:lower:log,accuracy:higher; of log, the logarithms
  --ladder           predict a larger size from several small ones
  --target COMPUTE   of a ladder: the larger size, as 6 x parameters x tokens,
                     such as 1e21; by default 4 times the largest of the ladder
  --html FILE        write a page with everything: table, curves, differences,
                     costs, translations
  --serve[=PORT]     show that page in a browser here, renewed as runs go on;
                     without a STUDY, an index of all studies and searches
  --markdown FILE    write the table as Markdown
  --latex FILE       write it for \\input in a paper; the preamble needs
                     booktabs and graphicx
  --latex-notes N    the notes below it: none, short (what its marks mean) or
                     full, the default
  --latex-columns N  1 fits it into one column of two, with BLEU below
                     perplexity; by default 2
  --svg FILE         write a picture of what the terminal would show
                     (FILE may be - for standard output)
  --wandb PROJECT    write a report on Weights & Biases, with plots of its runs;
                     it needs wandb-workspaces
"""
_LATEX: dict[str, tuple[str, ...]] = {"--latex-notes": get_args(Notes), "--latex-columns": ("1", "2")}
_JOURNAL = ".journal"
WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # removed: an SVG should not load fonts from a server


def main(words: Sequence[str]) -> None:
    """Report on a study or on a sweep file."""
    args = parse("report", f"{HELP}\nStudies: {', '.join(study_names())}\n", words or ["--help"])
    draw = _drawings(args.options)
    files = {option: file for option, file in args.options.items() if option in draw}
    if "--ladder" in args.options:
        _report_ladder(_ladder(args), args.options.get("--html"), words, files, draw)
        return
    if "--target" in args.options:
        raise UserError("--target is where a ladder leads: say --ladder, too")
    refuse_metric_without_from(args)
    names = [word for word in args.words if "=" not in word]
    if len(names) > 1 or any(map(_names_runs, names)):
        _report_several(args, names, words, files, draw)
        return
    if "--serve" in args.options:
        _serve(args, files)
        return
    if args.words and names_sweep(args.study):
        _report_sweep(args, words, files, draw)
        return
    page, project = args.options.get("--html"), args.options.get("--wandb")
    baseline = args.options.get("--baseline", "")
    if project and "--from" in args.options:
        raise UserError("--wandb draws the runs of runs_dir: leave out --from")
    place = args.options.get("--from")
    found = read_from(place, args) if place else find_results(args.study, args.runs_dir, args.where)
    made = make_report(found, baseline)
    if page:
        from etude.report.render.html.document import document

        write_or_print_page(page, document(made.compared, command=_command(words, page)))
    if project:
        from etude.report.render.wandb.publish import publish

        lines = publish(made, args.runs_dir, project, args.where, baseline)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    if files or not (page or project):
        _show(made.rows, files, draw)


def _command(words: Sequence[str], page: str) -> str:
    """Return what was typed, with the name of the page's file without its folder."""
    return shlex.join([word.replace(page, Path(page).name) for word in ("etude", "report", *words)])


def _names_runs(name: str) -> bool:
    """Return whether `name` means directories of runs."""
    return bool(re.search(r"[*?[]", name)) or ("/" in name and typed_path(name).is_dir())


def _report_several(
    args: Arguments,
    names: Sequence[str],
    words: Sequence[str],
    files: Mapping[str, str],
    draw: Mapping[str, Callable[[Rows], str]],
) -> None:
    """Report on several studies, or on runs of any: in one table if they share a setting, or else in one each.

    Raises:
        UserError: an option is for one study, or there is nothing to report.
    """
    if other := next((o for o in ("--serve", "--wandb", "--from") if o in args.options), ""):
        raise UserError(f"{other} is for one study: name only one, or leave it out")
    if sweep := next(filter(names_sweep, names), ""):
        raise UserError(f"{sweep} is a sweep, which has a table of its own: `etude report {sweep}`")
    where = Arguments(["", *(word for word in args.words if "=" in word)], {}).where
    of_runs = [name for name in names if _names_runs(name)]
    studies = dict.fromkeys(name for name in names if name not in of_runs)
    known = {*study_names(), *(studies_in(args.runs_dir)[0] if args.runs_dir.is_dir() else ())}
    if unknown := next((name for name in studies if name not in known), ""):
        why = no_such_study(unknown, known)
        raise UserError(f"{unknown!r} is not key=value, such as scale=small, and {why}") from why
    found = [find_results(name, args.runs_dir, where) for name in studies]
    found += [results_of_runs(of_runs, where)] if of_runs else []
    made = [make_report(one, args.options.get("--baseline", "")) for one in together(found)]
    if "--svg" in files and len(made) > 1:
        raise UserError("--svg shows one table, and these studies are of different settings: name one")
    if page := args.options.get("--html"):
        from etude.report.render.html.document import document

        first, *others = made
        further = [one.rows for one in others]
        write_or_print_page(page, document(first.compared, command=_command(words, page), further=further))
    for option, file in files.items():
        write_or_print(file, "\n".join(draw[option](one.rows) for one in made))
    for one in made * (not (files or page)):
        console().print(RenderedTable(one.rows), "", crop=False)


def read_from(place: str, args: Arguments) -> Results:
    """Read the runs of a study from a CSV, or from W&B if `place` is wandb:[ENTITY/]PROJECT.

    Raises:
        UserError: a CSV or an option is not valid, or there is no such run.
    """
    if place.startswith("wandb:"):
        from etude.report.render.wandb.fetch import fetch

        return fetch(args.study, place.removeprefix("wandb:"), args.where)
    words = args.words if args.words and "=" not in args.words[0] else ["", *args.words]  # the study need not be named
    return results_of_csv(
        place, words[0], Arguments(words, {}).where, args.options.get("--baseline", ""), _metrics(args)
    )


def _report_ladder(
    ladder: "Ladder",
    page: str | None,
    words: Sequence[str],
    files: Mapping[str, str],
    draw: Mapping[str, Callable[[Rows], str]],
) -> None:
    from etude.report import ladder_table

    rows = ladder_table.table(ladder)
    if page:
        from etude.report.render.html.ladder_page import ladder_page

        write_or_print_page(page, ladder_page(ladder, rows, _command(words, page)))
    if files or not page:
        _show(rows, files, draw)


def _ladder(args: Arguments) -> "Ladder":
    """Read the ladder of a CSV, or that of a study.

    Raises:
        UserError: an option is not valid, or the runs make no ladder.
    """
    from etude.report.ladder import ladder_of_csv, ladder_of_study

    for option in ("--serve", "--wandb"):
        if option in args.options:
            raise UserError(f"{option} is not for a ladder; there are --html, {', '.join(_DRAWINGS)}")
    typed = args.options.get("--target")
    target = None if typed is None else to_number(typed)
    if target is not None and not 0 < target < math.inf:
        raise UserError(f"--target {typed}: it is the compute of a larger model, 6 x parameters x tokens, such as 1e21")
    baseline, metrics = args.options.get("--baseline", ""), _metrics(args)
    if file := args.options.get("--from"):
        if chosen := [word for word in args.words if "=" in word]:
            raise UserError(
                f"{chosen[0]}: a ladder has all rows of {file}: leave the word out, or rows out of the file"
            )
        if file.startswith("wandb:"):
            raise UserError(
                f"--from {file}: a ladder is read from a CSV, such as that of etude results --csv, or from runs"
            )
        if not args.words:
            return ladder_of_csv(file, baseline, metrics, target)
        study = load_study(args.study)
        target = target or (study.ladder.target if study.ladder else None)
        return ladder_of_csv(file, baseline or study.baseline, metrics or [study.lead], target)
    rungs, places = sweep_file.ladder_runs_of(args.study, sweep_words(args))
    return ladder_of_study(load_study(args.study), rungs, places, baseline, metrics, target)


def _metrics(args: Arguments) -> list[Metric]:
    return [typed_metric(word) for word in args.options.get("--metric", "").split(",") if word]


def refuse_metric_without_from(args: Arguments) -> None:
    """Raise if columns of a CSV are named and no CSV."""
    if "--metric" in args.options and "--from" not in args.options:
        raise UserError("--metric is for the columns of a CSV: say --from FILE.csv, too, or leave it out")


def names_sweep(name: str) -> bool:
    """Return whether `name` means a sweep file, or the journal of a search, and not a study."""
    return Path(name).suffix == _JOURNAL or sweep_file.names_file(name)


def _report_sweep(
    args: Arguments, words: Sequence[str], files: Mapping[str, str], draw: Mapping[str, Callable[[Rows], str]]
) -> None:
    """Report on a sweep file: on its search if it has begun one, or else on its finished runs.

    Raises:
        UserError: an option or a word is not allowed, or there is nothing to report.
    """
    found = find_search(args)
    for option in ("--wandb", "--baseline", "--from", *["--html"] * (found is None)):
        if option in args.options:
            raise UserError(f"{option} is for a study; of a sweep file there are {', '.join(_DRAWINGS)}")
    if found is None:
        name, typed = args.study, sweep_words(args)
        runs, drawn = sweep_file.runs_of(name, typed), sweep_file.drawn_keys(name, typed)
        _show(search(shlex.join([name, *typed]), runs, drawn, sweep_file.objective_of(name)), files, draw)
        return
    page, rows = args.options.get("--html"), search_table.table(found)
    best, baseline = found.confirmation
    title = f"{rows.name} confirmed"
    confirmed = [confirmation_table.table(title, found.selection, best, baseline)] if best else []
    if page:
        from etude.report.render.html.search_page import search_page

        write_or_print_page(page, search_page(found, rows, _command(words, page), confirmed))
    if files or not page:
        _show(rows, files, draw, confirmed)


def find_search(args: Arguments) -> Searched | None:
    """Read the search of a sweep file, or that of the journal that is named; None if the file has begun none.

    Raises:
        UserError: there are several, or it cannot be read.
    """
    named = Path(args.study)
    if named.suffix == _JOURNAL:
        if args.words[1:]:
            raise UserError(f"{named} holds all of one search: leave out {' '.join(args.words[1:])}")
        return read_search(named, named.stem)
    journals = sorted(args.runs_dir.glob(f"*/{glob.escape(named.stem)}{_JOURNAL}"))
    if len(journals) > 1:
        raise UserError(f"several searches are called {named.stem}; name one: {', '.join(map(str, journals))}")
    typed = shlex.join([args.study, *sweep_words(args)])
    return read_search(journals[0], named.stem, typed) if journals else None


def sweep_words(args: Arguments) -> list[str]:
    """Return the words behind the name of a sweep file, as they are typed after `etude sweep`.

    Raises:
        UserError: one is not key=value, or asks for `tuned`.
    """
    if args.where.get("tuned", "false") != "false":  # its runs are trials, judged runs, and some that are not known yet
        raise UserError("tuned=true is for `etude sweep`: `etude report STUDY` shows each arm of the study at its best")
    folder = [f"runs_dir={quote(args.options['runs_dir'])}"] if "runs_dir" in args.options else []
    return [*args.words[1:], *folder]


def _show(
    rows: Rows, files: Mapping[str, str], draw: Mapping[str, Callable[[Rows], str]], further: Sequence[Rows] = ()
) -> None:
    """Write the table, and further ones below it, to each file in the format of its option; or print them."""
    tables = [rows, *further]
    for option, file in files.items():
        write_or_print(file, _picture(*tables) if option == "--svg" else "\n".join(map(draw[option], tables)))
    for table in tables * (not files):
        console().print(RenderedTable(table), crop=False)


def _drawings(options: Mapping[str, str]) -> dict[str, Callable[[Rows], str]]:
    """Map each option for a file to the function that renders its content.

    Raises:
        UserError: an option for LaTeX has an unknown value, or is given without --latex.
    """
    for option in _LATEX.keys() & options.keys():
        if options[option] not in _LATEX[option]:
            raise UserError(f"{option}={options[option]}: choose one of {', '.join(_LATEX[option])}")
        if "--latex" not in options:
            raise UserError(f"{option} is for a table in LaTeX: say --latex FILE, too")
    notes, columns = cast(Notes, options.get("--latex-notes", "full")), int(options.get("--latex-columns", "2"))
    return _DRAWINGS | {"--latex": partial(latex, notes=notes, columns=columns)}


def _serve(args: Arguments, files: Mapping[str, str]) -> None:
    """Serve the page of a study or a search; without a name, an index of all.

    Raises:
        UserError: there is no such study or search, or an option does not go with --serve.
    """
    from etude.report.live import page_of_search, study_page
    from etude.report.serve import serve, serve_all

    if other := [*files, *({"--html", "--wandb", "--from"} & args.options.keys())]:
        raise UserError(f"--serve shows the page and writes nothing: leave out {', '.join(other)}")
    port = args.options["--serve"]
    if port and not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UserError(f"--serve={port}: a port is a number below 65536, such as --serve=8000")
    runs_dir, baseline = args.runs_dir, args.options.get("--baseline", "")
    if not args.words:
        if not runs_dir.is_dir():
            raise UserError(f"there is no folder {runs_dir}: name that of the runs with runs_dir=DIR, or train some")
        serve_all(runs_dir, int(port or 0))
    elif names_sweep(args.study):
        found = find_search(args)
        if found is None:
            raise UserError(f"{args.study} has no search to show: `etude sweep {args.study}` begins it")
        serve(lambda: page_of_search(find_search(args) or found), runs_dir / found.study, int(port or 0))
    else:
        if not (runs_dir / args.study).is_dir():
            load_study(args.study)  # raises if there is no such study, before the server starts
        where = args.where
        serve(lambda: study_page(args.study, runs_dir, where, baseline), runs_dir / args.study, int(port or 0))


def _picture(*tables: Rows) -> str:
    """Render as SVG what a terminal would show that has room for the longest line."""
    width = PIPE_WIDTH
    for _ in range(2):  # to find the longest line, and to draw
        recording = console(record=True, width=width, file=(shown := StringIO()))
        for rows in tables:
            recording.print(RenderedTable(rows), crop=False)
        width = max([width, *map(cell_len, shown.getvalue().splitlines())])
    return WEB_FONT.sub("", recording.export_svg(title=f"etude report {tables[0].name}"))


_DRAWINGS: dict[str, Callable[[Rows], str]] = {"--markdown": markdown, "--latex": latex, "--svg": _picture}
