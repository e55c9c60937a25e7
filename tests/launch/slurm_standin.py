"""As much of SLURM as is asked of it: `python slurm_standin.py FOLDER sbatch|srun|scontrol|squeue|sacct ARGUMENTS`.

sbatch takes down the script it is handed, as FOLDER/<number>.sh, and runs it if there is a FOLDER/open: every task of
an array at once, and again when it is queued again. It refuses the partition "none", and what FOLDER/refused names.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

PROGRAMS = ("sbatch", "srun", "scontrol", "squeue", "sacct")


def install(folder: Path) -> None:
    """Put the programs into FOLDER/bin."""
    (folder / "bin").mkdir(parents=True)
    for name in PROGRAMS:
        program = folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "{folder}" {name} "$@"\n')
        program.chmod(0o755)


def sbatch(folder: Path, script: str) -> None:
    text = Path(script).read_text()
    if "--partition=none" in text:
        sys.exit("sbatch: error: invalid partition specified: none")
    refused = folder / "refused"
    if refused.exists() and refused.read_text() in text:
        sys.exit(f"sbatch: error: {refused.read_text()} is more than there is")
    (folder / "environment").write_text(
        "\n".join(name for name in os.environ if name.startswith(("SLURM_", "SBATCH_")))
    )
    number = str(4700 + len([*folder.glob("*.sh")]))
    (folder / f"{number}.sh").write_text(text)
    print(f"Submitted batch job {number}", flush=True)
    array = re.search(r"--array=0-(\d+)", text)
    for task in range(int(array[1]) + 1) if array else ("",):
        (folder / f"{number}_{task}.state".replace("_.", ".")).write_text("PENDING")
        if (folder / "open").exists():
            machine = [sys.executable, __file__, folder, "node", number, str(task)]
            subprocess.Popen(machine, stdout=subprocess.DEVNULL, stderr=(folder / "errors").open("a"))


def node(folder: Path, number: str, task: str) -> None:
    """The machine that runs a task of job `number`, which is no array if `task` is empty."""
    job = f"{number}_{task}" if task else number
    own = {"SLURM_ARRAY_JOB_ID": number, "SLURM_ARRAY_TASK_ID": task} if task else {}
    again = folder / f"{job}.again"
    while True:
        (folder / f"{job}.state").write_text("RUNNING")
        subprocess.run(["sh", folder / f"{number}.sh"], env=os.environ | {"SLURM_JOB_ID": number, "JOB": job} | own)
        if not again.exists():
            break
        again.unlink()
    (folder / f"{job}.state").write_text("COMPLETED")


def srun(folder: Path, *words: str) -> None:
    command = [*words]
    while command[0].startswith("--"):
        del command[: 2 if command[0] in ("--output", "--error") else 1]
    (folder / f"{os.environ['JOB']}.pid").write_text(str(os.getpid()))
    os.execvp(command[0], command)


def scontrol(folder: Path, verb: str, job: str) -> None:
    assert verb == "requeue"
    (folder / f"{job}.again").touch()


def squeue(folder: Path, *words: str) -> None:
    """Jobs that are in the queue. A cluster with a FOLDER/busy does not answer."""
    assert {"--noheader", "--array", "--format=%i"} <= {*words}
    if (folder / "busy").exists():
        sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    for file in folder.glob("*.state"):
        if file.read_text().split()[0] in ("PENDING", "RUNNING"):
            print(file.stem)


def sacct(folder: Path, *words: str) -> None:
    print("JobID|State", *(f"{file.stem}|{file.read_text()}" for file in folder.glob("*.state")), sep="\n")


if __name__ == "__main__":
    globals()[sys.argv[2]](Path(sys.argv[1]), *sys.argv[3:])
