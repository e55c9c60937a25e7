"""Inspect this machine for `etude doctor`: versions, GPUs, disk space, services. No library is imported for it."""

import importlib.util
import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from netrc import NetrcParseError, netrc
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement

from etude.store.environment import installed_version, output_of

_HANDSHAKE = 2.0  # seconds for a server
_ROOM = 5e9  # bytes: enough for a corpus of some million pairs and the checkpoints of a few runs
_WANDB = ("https://api.wandb.ai", "https://api.forge.coreweave.com")  # servers of W&B's own, of older and newer clients


@dataclass(frozen=True)
class Finding:
    """One finding about the machine.

    Attributes:
        about: the thing that was checked.
        found: what was found.
        mend: how to fix it; empty if nothing is wrong.
        broken: whether étude cannot work until it is fixed.
    """

    about: str
    found: str
    mend: str = ""
    broken: bool = False


def torch_version() -> str:
    """Return the versions of PyTorch and of its CUDA, read from its files, as importing torch takes seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return "no torch"
    source = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    cuda, itself = (re.search(rf"^{name}\b.*?= *'(.+?)'", source, re.MULTILINE) for name in ("cuda", "__version__"))
    version = itself[1] if itself else installed_version("torch")  # a package may leave out its build: 2.11.0+cu130
    return f"torch {version} ({f'CUDA {cuda[1]}' if cuda else 'without CUDA'})"


def look_around(runs_dir: Path, cache_dir: Path, cores: int) -> Iterator[Finding]:
    """Check everything, and yield the findings one by one.

    Args:
        runs_dir: the folder for runs.
        cache_dir: the folder for prepared text.
        cores: how many cores runs may use.
    """
    yield Finding("Python", sys.version.split()[0])
    yield from _libraries()
    yield _gpus()
    yield Finding("processor", f"{cores} cores, {_memory() / 1e9:.0f} GB of memory")
    yield _room("runs_dir", runs_dir)
    yield _room("cache_dir", cache_dir)
    yield _wandb()
    yield _slurm()
    yield from _extras()


def _libraries() -> Iterator[Finding]:
    """Compare the installed dependencies with the versions that étude's metadata requires."""
    for requirement in map(Requirement, _requirements()):
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        found = installed_version(requirement.name)
        if found is None or not requirement.specifier.contains(found, prereleases=True):
            yield Finding(requirement.name, found or "missing", f"pip install '{requirement}'", broken=True)
        elif requirement.name in ("torch", "lightning", "hydra-core", "wandb"):
            yield Finding(requirement.name, torch_version()[6:] if requirement.name == "torch" else found)


def _extras() -> Iterator[Finding]:
    """Yield for each extra of étude whether its optional packages are installed."""
    extras: dict[str, list[str]] = {}
    for line in _requirements():
        if named := re.search(r"extra == ['\"]([\w-]+)['\"]", line):
            extras.setdefault(named[1], []).append(Requirement(line).name)
    for extra in sorted(extras.keys() - {"dev"}):
        missing = [name for name in extras[extra] if installed_version(name) is None]
        found = f"{', '.join(missing)} missing" if missing else "installed"
        yield Finding(f"extra {extra}", found, f"pip install 'etude[{extra}]', if wanted" if missing else "")


def _requirements() -> list[str]:
    """Return étude's requirements; an empty list if it runs from a checkout without being installed."""
    try:
        return requires("etude") or []
    except PackageNotFoundError:
        return []


def _gpus() -> Finding:
    if shutil.which("nvidia-smi") is None:
        return Finding("GPU", "none: runs train on the processor")
    listing = output_of("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    if listing is None:
        return Finding("GPU", "nvidia-smi does not answer", "look at nvidia-smi; until then, trainer=cpu")
    gpus = "; ".join(listing.splitlines()) or "none"
    if gpus != "none" and "without CUDA" in torch_version():
        return Finding("GPU", gpus, "this torch is built without CUDA: install one of pytorch.org's builds with it")
    return Finding("GPU", gpus)


def _memory() -> float:
    """Return the memory of the machine in bytes."""
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _room(key: str, folder: Path) -> Finding:
    """Check the free disk space and write permission of a folder, or of its nearest existing parent."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(there).free
    found = f"{folder}: {free / 1e9:.0f} GB free"
    if not os.access(there, os.W_OK):
        return Finding(key, f"{found}, not writable", f"choose another place: {key}=DIR", broken=True)
    return Finding(key, found, f"make room, or choose another place: {key}=DIR" if free < _ROOM else "")


def _wandb() -> Finding:
    """Check whether the user is logged in to W&B, and if so, whether the server can be reached."""
    chosen = _wandb_server()
    servers = [urlsplit(server) for server in ([chosen] if chosen else _WANDB)]
    known = servers if os.environ.get("WANDB_API_KEY") else [one for one in servers if _in_netrc(one.netloc)]
    if not known:
        mend = "to send them: wandb login, logger.wandb.mode=online"
        return Finding("W&B", "not logged in: runs are logged offline", mend)
    host = known[0].hostname or ""
    try:
        port = known[0].port or (80 if known[0].scheme == "http" else 443)
        socket.create_connection((host, port), timeout=_HANDSHAKE).close()
    except (OSError, ValueError) as error:
        return Finding("W&B", f"logged in; {host} cannot be reached ({error})", "wandb sync sends later what is kept")
    return Finding("W&B", f"logged in; {host} answers", "")


def _wandb_server() -> str | None:
    """Return the server that the user has chosen, by a variable or by `wandb login --host`; None for W&B's own."""
    if server := os.environ.get("WANDB_BASE_URL"):
        return server
    settings = ConfigParser(interpolation=None)
    folder = Path(os.environ.get("WANDB_CONFIG_DIR") or "~/.config/wandb").expanduser()
    try:
        settings.read(folder / "settings", encoding="utf-8")
    except (ConfigError, UnicodeDecodeError):
        return None
    return settings.get("default", "base_url", fallback=None)


def _in_netrc(host: str) -> bool:
    try:
        return netrc(os.environ.get("NETRC")).authenticators(host) is not None
    except (OSError, NetrcParseError):
        return False


def _slurm() -> Finding:
    if shutil.which("sbatch") is None:
        return Finding("SLURM", "none here")
    version = output_of("sbatch", "--version") or "sbatch does not answer"
    if installed_version("submitit") is None:
        return Finding("SLURM", version, "pip install 'etude[slurm]', then hydra/launcher=submitit_slurm")
    return Finding("SLURM", version)
