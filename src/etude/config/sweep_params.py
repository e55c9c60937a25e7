"""The values in `hydra.sweeper.params`, which Hydra's sweepers take for a multirun besides the typed ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from etude.config.quoting import quote
from etude.paths import folders_of
from etude.study.arms import override_key
from etude.study.study import leaves


def with_params(overrides: Sequence[str], params: Mapping[str, Any]) -> list[str]:
    """Return the overrides of a multirun with those of `params` before them, except for keys that are typed.

    Args:
        overrides: as they were typed.
        params: key -> values as they would be typed (`{"seed": "1,2"}`); may be nested (`{"model": {"heads": "1,2"}}`).
    """
    typed = {override_key(word) for word in overrides}
    written = [(key, value if isinstance(value, str) else quote(value)) for key, value in leaves(params)]
    return [*(f"{key}={value}" for key, value in written if override_key(key) not in typed), *overrides]


def with_written_params(overrides: Sequence[str]) -> list[str]:
    """Return `with_params` of the params in the user's own config files.

    Raises:
        UserError: the config cannot be composed.
    """
    if len(folders_of("conf")) == 1:  # étude's own files have none
        return [*overrides]
    from hydra.errors import HydraException
    from omegaconf import OmegaConf

    from etude.config.compose import compose
    from etude.config.compose_cache import is_sweep
    from etude.config.explain import explained

    with explained(HydraException):
        fixed = [word for word in overrides if not is_sweep(word)]
    params = OmegaConf.select(compose(fixed), "hydra.sweeper.params")
    return with_params(overrides, OmegaConf.to_container(params) if params else {})  # type: ignore[arg-type]
