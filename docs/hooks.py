"""The site is the documents of the repository, in the repository's own folders, so that a link holds in both.

A file that a page links to and that is none itself, such as a study or a config, is shown as a page of its text; a
folder of configs as one page of all that it holds.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "docs/**/*.md", "experiments/*/*.md", "sweeps/*.md", "benchmarks/*.md")
AS_THEY_ARE = (".md", ".svg", ".png", ".css", ".html", ".ipynb")
DOCUMENTED = re.compile(r"^- \[(etude[\w.]+)\]\([^)]*\)(?:: (.+))?$", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()[^)#:\s]+(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Give every page, and every file of the repository that one links to, its place in the site."""
    found = Files(file for file in files if file.src_dir != config.docs_dir)
    for place in [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]:
        for path in (place, *_linked(place)):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in AS_THEY_ARE:
                file = File(name, str(ROOT), config.site_dir, config.use_directory_urls)
            else:
                file = File.generated(config, _shown_as(name, path), content=_show(path))
            if not found.get_file_from_path(file.src_uri):
                found.append(file)
    found.append(File("docs/site.css", str(ROOT), config.site_dir, config.use_directory_urls))
    return found


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show what the reference lists, with its docstrings; let links to what is shown as a page lead there."""
    markdown = DOCUMENTED.sub(_document, markdown)
    folder = (ROOT / page.file.src_uri).parent
    return LINK.sub(lambda link: _shown_as(link[0], folder / link[0]), markdown)


def _document(line: re.Match[str]) -> str:
    """mkdocstrings' block for a line of the reference: a module of which some names are shown, or one object."""
    name, members = line[1], (line[2] or "").replace("`", "")
    whole = f"members: [{members}], " if members else ""
    is_module = (ROOT / "src" / name.replace(".", "/")).with_suffix(".py").is_file() or members
    bare = "show_root_heading: false, show_root_toc_entry: false, " if is_module else ""
    return f"\n::: {name}\n    options: {{{whole}{bare}heading_level: 3}}\n"


def _linked(page: Path) -> Iterator[Path]:
    """What of the repository a page links to and is there; of what is not, MkDocs tells."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        path = (page.parent / target).resolve()
        if path.exists() and path.is_relative_to(ROOT):
            yield path


def _shown_as(name: str, path: Path) -> str:
    """The name of the page on which a file or folder is shown, which stands at `path`."""
    if path.is_dir():
        return f"{name.rstrip('/')}/index.md"
    return name if path.suffix in AS_THEY_ARE or not path.exists() else f"{name}.md"


def _show(path: Path) -> str:
    """A page of a file's text, or of the configs of a folder."""
    name = path.relative_to(ROOT).as_posix()
    if path.is_file():
        return f"# {name}\n\n{_block(path)}"
    group = name.removeprefix("conf/")
    configs = (f"## {group}={file.stem}\n\n{_block(file)}" for file in sorted(path.glob("*.yaml")))
    return "\n\n".join([f"# {name}", *configs])


def _block(path: Path) -> str:
    language = {".yaml": "yaml", ".py": "python"}.get(path.suffix, "text")
    return f"~~~~ {language}\n{path.read_text(encoding='utf-8').rstrip()}\n~~~~"
