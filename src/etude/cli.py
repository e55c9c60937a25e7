"""The verbs of `etude`. Nothing heavy is imported before the verb is known and its config has been checked."""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from etude import verbs
from etude.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from etude.rundir import RunDir

HELP = """étude: study the Transformer one change at a time.

usage: etude VERB [arguments]

  train      train and evaluate one model           etude train model.heads=2 scale=pocket
  sweep      the runs of a study or a sweep file    etude sweep sweeps/table3.yaml scale=pocket
  status     where the runs of a study stand        etude status table3
  plan       what runs will take and cost           etude plan table3 scale=full device=a100
  show       the model of a config as a tree        etude show model/position=rope
  diff       what two configs do differently        etude diff table3/base table3/A1
  report     the table of a study or of a search    etude report table3
  results    its runs for notebooks, one a row      etude results table3 --csv runs.csv
  evaluate   perplexity and BLEU of a trained run   etude evaluate run=runs/... decoding.beam=8
  analyze    heads, order, lengths, decoding        etude analyze run=runs/...
  translate  lines from stdin to stdout             etude translate run=runs/... < in.en > out.de
  prepare    download and tokenise a corpus         etude prepare data=multi30k_en_de

`etude VERB --help` says what each takes. Behind train, evaluate, analyze, translate and prepare stand
Hydra overrides and Hydra's own flags: --cfg job, --info, -m for a multirun;
`eval "$(etude -sc install=bash)"` completes with the tab key.
"""

_HELP = {"-h", "--help"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one verb.

    Exit status: 0 done, 1 a run failed, 2 a mistake that the message says how to mend, 3 the run diverged, 75 another
    process works on the run. A sweep is done when every run has a result, and a run that diverged has one.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _dispatch(words)
    except UserError as error:
        _fail(str(error), error.exit_status)
    except KeyboardInterrupt as stop:
        _fail("; ".join(["interrupted", *map(str, stop.args)]), 130)
    except BrokenPipeError:  # whoever read our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        _explained(error)
    sys.exit(0)


def _dispatch(words: list[str]) -> None:
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(HELP)
    elif words[0] == "--version":
        from etude import __version__

        sys.stdout.write(f"etude {__version__}\n")
    elif words[0] in ("-sc", "--shell-completion"):
        verbs.complete(words, VERBS)
    elif words[0] in VERBS:
        VERBS[words[0]](words[1:])
    else:
        raise UserError(f"{words[0]!r} is no verb of etude; {did_you_mean(words[0], VERBS)}")


def _explained(error: Exception) -> NoReturn:
    """One sentence for what the config layer can explain, and for a sweep with failed runs; else a bug's traceback."""
    from etude.config.explain import explain
    from etude.sweep import SweepFailed

    if isinstance(error, SweepFailed):
        _fail(str(error), 1)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
        _fail(f"{error.filename or 'a file'}: {error.strerror}; make room or choose another place, then start again", 2)
    sentence = explain(error)
    if sentence is None:
        raise error
    _fail(str(sentence), sentence.exit_status)


def _fail(message: str, status: int) -> NoReturn:
    sys.stderr.write(f"etude: {message}\n")
    sys.exit(status)


def _sweep(words: list[str]) -> None:
    from etude.paths import shipped
    from etude.sweep.sweepfile import find_file, sweep_overrides

    if not words or _HELP & set(words):
        sys.stdout.write(
            "usage: etude sweep FILE|STUDY [key=value ...]\n\n"
            "Runs all that FILE (a W&B sweep file, method grid or random) or STUDY asks for, each run in a process\n"
            "of its own and as many at once as there are GPUs, or cores. Finished runs are skipped, half-finished\n"
            "ones go on. Overrides hold for all runs; run_cap=N ends after N, search_seed=S draws others, tuned=true\n"
            "runs each arm of a study at its own best as well, if study.yaml says what to try:\n\n"
            "  etude sweep sweeps/table3.yaml scale=pocket seed=1,2,3 hydra.launcher.workers=2\n"
            "  etude sweep sweeps/learning_rate.yaml run_cap=40\n"
            "  etude sweep table3 tuned=true seed=1,2,3\n\n"
            f"The files that come with étude lie in {shipped('sweeps')};\n"
            "`wandb sweep` takes the path of one, for W&B's agents:\n\n"
            '  wandb sweep "$(etude sweep --path learning_rate)"\n'
        )
        return
    if "--path" in words:
        names = [word for word in words if word != "--path"]
        file = find_file(names[0]) if len(names) == 1 else None
        if file is None:
            raise UserError("--path is told for one sweep file, such as: etude sweep --path learning_rate")
        sys.stdout.write(f"{file.absolute()}\n")
        return
    for word in words:
        if word.startswith("-"):
            raise UserError(f"etude sweep takes key=value and no {word}; did you mean --help?")
    verbs.train(["-m", *sweep_overrides(words[0], words[1:])])


def _status(words: list[str]) -> None:
    from etude.sweep.status import status

    status(words)


def _plan(words: list[str]) -> None:
    from etude.plan.command import HELP as PLAN_HELP
    from etude.plan.command import plan, plan_runs, separated
    from etude.sweep.sweepfile import planned_runs

    subject, options = separated(words)
    if _HELP & set(options):
        sys.stdout.write(PLAN_HELP)
    elif subject and "=" not in subject[0]:
        plan_runs(planned_runs(subject[0], subject[1:]), options)
    else:
        plan(words)


def _show(words: list[str]) -> None:
    from etude.show.command import show

    show(words)


def _diff(words: list[str]) -> None:
    from etude.show.diff import diff

    diff(words)


def _report(words: list[str]) -> None:
    from etude.report.command import report, report_search
    from etude.sweep.sweepfile import drawn_keys, names_file, runs_of

    if words and not _HELP & set(words) and names_file(words[0]):
        report_search(words, runs_of, drawn_keys)
    else:
        report(words)


def _results(words: list[str]) -> None:
    from etude.report.listing import results
    from etude.sweep.standing import standing

    def told(run: "RunDir") -> str:
        try:
            found = standing(run)
        except (UserError, OSError, ValueError):
            return "unfinished"
        return f"{found.state}, {found.error}" if found.error else str(found.state)

    results(words, told)


VERBS: dict[str, Callable[[list[str]], None]] = {
    "train": verbs.train,
    "sweep": _sweep,
    "status": _status,
    "plan": _plan,
    "show": _show,
    "diff": _diff,
    "report": _report,
    "results": _results,
    "evaluate": verbs.evaluate,
    "analyze": verbs.analyze,
    "translate": verbs.translate,
    "prepare": verbs.prepare,
}
