"""The arms of all studies, as Hydra sees them: `experiment=<study>/<arm>`."""

from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from etude.errors import UserError
from etude.paths import found
from etude.studies.study import load_study


def arm_config(name: str) -> DictConfig:
    """The overrides of the arm `<study>/<arm>` as a Hydra config: groups become its defaults list, values its body.

    Raises:
        UserError: an override of the arm is not one that a study can hold.
    """
    study, _, arm = name.partition("/")
    defaults: list[dict[str, Any] | str] = []
    body = OmegaConf.create({"study": study, "arm": arm})
    for override in OverridesParser.create().parse_overrides(load_study(study).arms[arm]):
        key = override.get_key_element()
        if override.is_sweep_override() or override.is_delete():
            raise UserError(f"study {study}, arm {arm}: {override.input_line} is no plain key=value")
        if is_group(override):
            chosen = override.value()  # of callbacks and loggers several
            names = [*map(str, chosen)] if isinstance(chosen, list) else str(chosen)
            defaults.append({f"override /{key.lstrip('+')}": names})
        else:
            OmegaConf.update(body, key.lstrip("+"), override.value(), force_add=True)
    return OmegaConf.merge({"defaults": [*defaults, "_self_"]}, body)  # type: ignore[return-value]


def is_group(override: Override) -> bool:
    """`model/position=learned` and `model=big` choose a file; `model.heads=1` sets a value."""
    return "." not in override.key_or_group and any(
        (folder / override.key_or_group).is_dir() for folder in found("conf")
    )
