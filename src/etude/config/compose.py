"""Compose a config outside Hydra's command line, for tests, plans and other programs."""

from collections.abc import Sequence

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from omegaconf import DictConfig

from etude.config.explain import explained
from etude.config.quoting import make_readable
from etude.config.resolvers import register
from etude.paths import shipped


def compose(overrides: Sequence[str] = (), config_name: str = "train") -> DictConfig:
    """Compose the config that `etude train OVERRIDES` would use, with Hydra's own node.

    Raises:
        UserError: an override names something that does not exist.
    """
    register()
    with explained(Exception), initialize_config_dir(str(shipped("conf")), version_base="1.3", job_name=config_name):
        return hydra_compose(config_name, make_readable(overrides), return_hydra_config=True)
