"""Show `experiments/` to Hydra: every arm of every study is an option of the config group `experiment`."""

from typing import Any

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf

from etude.config.compose_cache import is_group
from etude.errors import UserError
from etude.paths import folders_of
from etude.study.arm_names import arm_names, find_arm, is_arm

_OPTUNA_SWEEPER = "hydra_plugins.etude_sweeper.OptunaSweeper"
_OTHER_OPTUNA_SWEEPER = "hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper"  # which needs an old Optuna
GROUP = "experiment"


class StudySearchPath(SearchPathPlugin):
    """Adds the user's `conf/` and the studies to the search path of étude's commands; other programs keep theirs.

    In these commands, the class of hydra-optuna-sweeper means étude's own.
    """

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Extend the search path; Hydra calls this when the main config directory is known."""
        *own, ours = map(str, folders_of("conf"))
        if any((element.path or "").removeprefix("file://") == ours for element in search_path.get_path()):
            for folder in own:
                search_path.prepend(provider="etude-folder", path=f"file://{folder}", anchor="main")
            search_path.append(provider="etude-studies", path="study://")
            classes = Plugins.instance().class_name_to_class
            classes[_OTHER_OPTUNA_SWEEPER] = classes[_OPTUNA_SWEEPER]


class StudySource(ConfigSource):
    """Serves configs such as `experiment/table3/A1` from `experiments/table3/study.yaml`."""

    @staticmethod
    def scheme() -> str:
        """Return the scheme of this source in the search path."""
        return "study"

    def available(self) -> bool:
        """Return True: without studies, the group is empty."""
        return True

    def load_config(self, config_path: str) -> ConfigResult:
        """Load one arm as a config in the package _global_."""
        name = self._name(config_path)
        if not self.is_config(config_path):
            raise ConfigLoadError(f"Config not found : {config_path}")
        return ConfigResult(
            config=arm_config(name), path="study://", provider=self.provider, header={"package": "_global_"}
        )

    def is_group(self, config_path: str) -> bool:
        """Return whether the path is a group: the root, `experiment` or `experiment/<study>`."""
        path = config_path.strip("/")
        if path in ("", GROUP):
            return True
        return path.startswith(f"{GROUP}/") and any(name.startswith(f"{self._name(path)}/") for name in arm_names())

    def is_config(self, config_path: str) -> bool:
        """Return whether the path is a config: `experiment/<study>/<arm>`."""
        return config_path.startswith(f"{GROUP}/") and is_arm(self._name(config_path))

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """List all `<study>/<arm>` under `experiment`, so that `experiment=glob(table3/*)` finds them."""
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


def arm_config(name: str) -> DictConfig:
    """Convert the overrides of the arm `<study>/<arm>` to a Hydra config: groups go to the defaults list.

    Raises:
        UserError: an override of the arm is not a plain `key=value`, or two of several arms contradict each other.
    """
    study, arm, overrides = find_arm(name)
    defaults: list[dict[str, Any] | str] = []
    body = OmegaConf.create({"study": study, "arm": arm})
    for override in OverridesParser.create().parse_overrides(overrides):
        key = override.get_key_element()
        if override.is_sweep_override() or override.is_delete():
            raise UserError(f"study {study}, arm {arm}: {override.input_line} is not a plain key=value")
        if is_group(override):
            chosen = override.value()  # a list for groups with several choices, such as callbacks and loggers
            names = [*map(str, chosen)] if isinstance(chosen, list) else str(chosen)
            defaults.append({f"override /{key.lstrip('+')}": names})
        else:
            OmegaConf.update(body, key.lstrip("+"), override.value(), force_add=True)
    return OmegaConf.merge({"defaults": [*defaults, "_self_"]}, body)  # type: ignore[return-value]
