"""Config keys and groups that had another name before: told to whoever types the old one, and read in old runs."""

from typing import Any

KEYS = {
    "budget.rate": "budget.lr_factor",
    "budget.valid_every": "budget.val_every",
    "budget.max_pieces": "budget.max_tokens",
    "decoding.max_extra": "decoding.max_len_offset",
    "model.kernel": "model.backend",
}
GROUPS = {"model/kernel": "model/backend"}
VALUES = {"model/kernel=explicit": "model/backend=eager"}


def renamed(key: str) -> str | None:
    """What a key or a group is called now, or None where it never had another name."""
    for old, new in (KEYS | GROUPS).items():
        if key == old or key.startswith(f"{old}."):
            return new + key.removeprefix(old)
    return None


def with_new_names(config: dict[str, Any]) -> dict[str, Any]:
    """The config of a run from before, its keys and choices under the names of today."""
    for old, new in KEYS.items():
        (section, key), (_, today) = old.split("."), new.split(".")
        held = config.get(section)
        if isinstance(held, dict) and key in held:
            config = config | {section: {today if name == key else name: value for name, value in held.items()}}
    choices = dict(config.get("choices", {}))
    for old, new in GROUPS.items():
        if old in choices:
            value = choices.pop(old)
            choices[new] = VALUES.get(f"{old}={value}", f"{new}={value}").partition("=")[2]
    return config | {"choices": choices} if "choices" in config else config
