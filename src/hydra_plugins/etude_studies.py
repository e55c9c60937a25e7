"""Hydra's view of `experiments/`: every arm of every study is an option of the config group `experiment`."""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin

from etude.config.config_source import arm_config
from etude.paths import found
from etude.studies.study import arm_names

GROUP = "experiment"


class StudySearchPath(SearchPathPlugin):
    """Adds the user's `conf/` and the studies to the search path of étude's own commands, and of no other program."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra once the main config directory is known."""
        *own, ours = map(str, found("conf"))
        if any((element.path or "").removeprefix("file://") == ours for element in search_path.get_path()):
            for folder in own:
                search_path.prepend(provider="etude-folder", path=f"file://{folder}", anchor="main")
            search_path.append(provider="etude-studies", path="study://")


class StudySource(ConfigSource):
    """Serves `experiment/table3/A1` out of `experiments/table3/study.yaml`."""

    @staticmethod
    def scheme() -> str:
        """Of the search path."""
        return "study"

    def available(self) -> bool:
        """Always: without studies the group is empty."""
        return True

    def load_config(self, config_path: str) -> ConfigResult:
        """One arm, as a config in the package _global_."""
        name = self._name(config_path)
        if not self.is_config(config_path):
            raise ConfigLoadError(f"Config not found : {config_path}")
        return ConfigResult(
            config=arm_config(name), path="study://", provider=self.provider, header={"package": "_global_"}
        )

    def is_group(self, config_path: str) -> bool:
        """`experiment` and `experiment/<study>`."""
        path = config_path.strip("/")
        if path in ("", GROUP):
            return True
        return path.startswith(f"{GROUP}/") and any(name.startswith(f"{self._name(path)}/") for name in arm_names())

    def is_config(self, config_path: str) -> bool:
        """`experiment/<study>/<arm>`."""
        return config_path.startswith(f"{GROUP}/") and self._name(config_path) in arm_names()

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """All `<study>/<arm>` under `experiment`, so that `experiment=glob(table3/*)` finds them."""
        path = config_path.strip("/")
        if path == "":
            return [GROUP] if results_filter in (None, ObjectType.GROUP) else []
        if not self.is_group(path) or results_filter == ObjectType.GROUP:
            return []
        prefix = "" if path == GROUP else f"{self._name(path)}/"
        return sorted(name.removeprefix(prefix) for name in arm_names() if name.startswith(prefix))

    @staticmethod
    def _name(config_path: str) -> str:
        return config_path.strip("/").removeprefix(GROUP).strip("/").removesuffix(".yaml")
