"""Configs that share their composition are those that each would be by itself, refusals included."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.config import compose_cache
from etude.config.compose import compose
from etude.config.compose_cache import ConfigCache, expand
from etude.config.resolve import as_written, resolve_valid, typed_overrides
from etude.errors import UserError

BASE = resolve_valid(compose())
TYPED = [
    [],
    ["scale=full", "model.heads=4", "model/position=learned"],
    ["model=big", "model.dropout=0.2"],
    ["experiment=table3/A1", "model.heads=2"],
    ["experiment=table3/E1", "model/position=none", "seed=3"],
    ["experiment=table3/E1", "debug=fast"],
    ["experiment=table3/big", "model=tiny"],
    ["+data.extra=1"],
    ["model.d_k=${width:32}", "scale.width=0.25"],
    ["data=files", "data.languages=[en,fr]", "data.valid={tsv: v.tsv}", "data.valid.tsv=w.tsv"],
    ["hydra.job.chdir=false", "seed=2"],
    ["model.d_ff=${seed}", "model.d_k=null"],
    ["experiment=table3/A1", "experiment=table3/B1"],
    ["arm=mine", "study=mine", "experiment=table3/C4"],
]
WRONG = [
    ["model.headz=4"],
    ["experiment=table3/A9"],
    ["model/position=rop"],
    ["scale.width.x=1"],
    ["seed=1", "seed=2", "nothing=1"],
    ["model.heads=[1"],
    ["model.heads"],
    ["model=3"],
]


def alone(overrides: list[str]) -> str:
    """What becomes of a run whose config is composed by itself, to the order of the keys."""
    try:
        config = compose(overrides)
        return json.dumps([resolve_valid(config), as_written(config), typed_overrides(config)])
    except UserError as refusal:
        return str(refusal)


def together(configs: ConfigCache, overrides: list[str]) -> str:
    try:
        found = configs.resolve(overrides)
        return json.dumps([found.config, found.written, found.typed])
    except UserError as refusal:
        return str(refusal)


@pytest.fixture(scope="module")
def configs() -> ConfigCache:
    """One for all tests: what is shared must not mix."""
    return ConfigCache()


@pytest.mark.parametrize("overrides", [*TYPED, *WRONG], ids=str)
def test_whatever_is_typed_is_the_same_config_and_keeps_what_was_typed(configs, overrides):
    assert together(configs, overrides) == alone(overrides)


def numbers(node: dict, path: str = "") -> dict[str, int | float]:
    """Every number of a config by its dotted key."""
    found = {}
    for name, value in node.items():
        if isinstance(value, dict):
            found |= numbers(value, f"{path}{name}.")
        elif type(value) in (int, float):
            found[f"{path}{name}"] = value
    return found


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(numbers(BASE)))
def test_any_number_of_the_config_may_vary(key):
    configs = ConfigCache()
    value = numbers(BASE)[key]
    other = value * 2 or {int: 2, float: 0.25}[type(value)]
    for number in (value, other):
        shared = together(configs, [f"{key}={number}", "model.d_ff=64"])
    assert shared == alone([f"{key}={other}", "model.d_ff=64"])


@pytest.mark.parametrize(
    "jobs",
    [
        [["seed=1"], ["seed=-1"], ["seed=2"]],
        [["seed=1"], ["seed=x"], ["seed=1.5"], ["seed=true"], ["seed=null"], ["seed=[1,2]"]],
        [["model.d_ff=${seed}", "seed=8"], ["model.d_ff=${seed}", "seed=16"]],
        [["model.d_k=8", "model.dropout=0.1"], ["model.d_k=16", "model.dropout=0.2"]],
        [["model.dropout=0.1"], ["model.dropout=1.5"], ["model.dropout=0"]],
        [["budget.max_steps=20", "seed=1"], ["budget.max_steps=20", "seed=2"], ["budget.max_steps=0", "seed=2"]],
        [["averaging.checkpoints=2", "averaging.every=10"], ["averaging.checkpoints=900", "averaging.every=10"]],
        [["+model.x=1", "seed=1"], ["+model.x=1", "seed=2"]],
        [["seed=1", "seed=2"], ["seed=1", "seed=3"]],
        [["model/position=rope", "model.position.base=100"], ["model/position=rope", "model.position.base=0"]],
        [["cache_dir=${oc.env:HOME}/x", "seed=1"], ["cache_dir=${oc.env:HOME}/x", "seed=2"]],
        [["scale.width=0.5"], ["scale.width=0.25"]],
        [
            ["study=seed", "averaging.checkpoints=${${study}}", "seed=1"],
            ["study=seed", "averaging.checkpoints=${${study}}", "seed=2"],
        ],
        [["averaging.checkpoints=${oc.select:seed}", "seed=1"], ["averaging.checkpoints=${oc.select:seed}", "seed=2"]],
        [["averaging.checkpoints=${..seed}", "seed=1"], ["averaging.checkpoints=${..seed}", "seed=2"]],
        [["model.d_ff=${hydra.job.num}", "seed=1"], ["model.d_ff=${hydra.job.num}", "seed=2"]],
        [["data.languages=[en,fr]", "data=files", "seed=1"], ["data.languages=[en,fr]", "data=files", "seed=2"]],
    ],
    ids=str,
)
def test_jobs_that_differ_in_values_are_what_each_would_be_alone(jobs):
    configs = ConfigCache()
    assert [together(configs, job) for job in jobs] == [alone(job) for job in jobs]


LINES = [
    "experiment=table3/B1",
    "experiment=table3/E1",
    "model=tiny",
    "scale=small",
    "model.d_k=null",
    "model.d_v=${model.d_k}",
    "model.d_ff=${width:64}",
    "schedule.factor=${loss.smoothing}",
    "+model.x=1",
    "~model.d_ff",
    "stale=rerun",
]
KEYS = ["seed", "model.heads", "model.d_k", "loss.smoothing", "budget.max_steps", "scale.width", "trainer.devices"]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(LINES), max_size=3, unique=True),
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True),
    st.data(),
)
def test_whatever_is_typed_sharing_changes_nothing(lines, keys, data):
    values = st.sampled_from([0, 1, 2, 4, 0.1, 0.5])
    configs = ConfigCache()
    for _ in range(2):
        job = [*lines, *(f"{key}={data.draw(values)}" for key in keys)]
        shared = together(configs, job)
    assert shared == alone(job)


def test_what_reads_hydras_node_is_composed_for_each_run(monkeypatch):
    asked = []
    monkeypatch.setattr(compose_cache, "resolve_plain", lambda own, choices: {"seed": 0})
    monkeypatch.setattr(compose_cache, "check_resolved", lambda plain, typed: None)

    def counting(overrides):
        asked.append(list(overrides))
        return compose(overrides)

    configs = ConfigCache(counting)
    jobs = [["runs_dir=${hydra:job.name}", f"seed={seed}"] for seed in (1, 2)]
    for job in jobs:
        configs.resolve(job)
    assert [job for job in asked if job] == jobs


def test_a_list_of_arms_that_a_sampler_has_drawn_is_what_it_is_when_it_is_typed(configs):
    drawn, typed = (
        configs.resolve([f"experiment={arms}"]).config
        for arms in ("[table3/A1,axes/norm-rms]", "table3/A1+axes/norm-rms")
    )
    assert drawn == typed
    assert drawn["choices"]["experiment"] == "table3/A1+axes/norm-rms"


def test_arms_and_seeds_share_a_composition():
    asked = []

    def counting(overrides):
        asked.append(list(overrides))
        return compose(overrides)

    configs = ConfigCache(counting)
    for arm in ("base", "A1", "B1", "C4", "D3"):
        for seed in (1, 2):
            configs.resolve([f"experiment=table3/{arm}", f"seed={seed}"])
    configs.resolve(["experiment=table3/E1"])
    assert asked == [[], ["model/position=learned"]]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("experiment=glob(tabel3/*)", r"experiment=glob\(tabel3/\*\) matches nothing; did you mean table3"),
        ("experiment=glob(multi30k/Q*)", r"matches nothing; there are multi30k/tiny"),
        ("model/norm=glob([rms],exclude=[rms])", r"model/norm=glob\(rms\) excludes all that it matches"),
        ("model/norm=glob(batch*)", r"model/norm=glob\(batch\*\) matches nothing; "),
        ("model/positions=glob(*)", "model/positions is not a config group; did you mean model/position"),
        ("model.heads=range(4,1)", r"model\.heads=range\(4,1\) lists no values: write them, as model\.heads=1,2"),
        ("model.heads=range(1,4,0)", r"model\.heads=range\(1,4,0\) lists no values"),
        ("model.dropout=interval(0,1)", r"interval\(0,1\) lists no values: .* is for hydra/sweeper=optuna"),
    ],
)
def test_what_lists_no_value_is_a_mistake(typed: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        expand(["seed=1,2", typed])


def test_arms_may_be_named_as_numbers_are(tmp_path, monkeypatch):
    (tmp_path / "experiments" / "mine").mkdir(parents=True)
    (tmp_path / "experiments" / "mine" / "study.yaml").write_text(
        'baseline: "4"\narms: {"4": [], "null": [model.heads=2]}\n'
    )
    monkeypatch.chdir(tmp_path)
    four, null = ConfigCache().resolve_all([["experiment=mine/4"], ["experiment=mine/null"]])
    assert (four.config["arm"], null.config["arm"], null.config["model"]["heads"]) == ("4", "null", 2)


def test_a_number_that_an_arm_gives_a_group_is_told_with_the_arm(tmp_path, monkeypatch):
    (tmp_path / "experiments" / "mine").mkdir(parents=True)
    (tmp_path / "experiments" / "mine" / "study.yaml").write_text(
        "baseline: base\narms: {base: [], three: [model/norm=3]}\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^experiment=mine/three: model/norm=3: there is no '3' in the group model/n"):
        ConfigCache().resolve_all([["experiment=mine/base"], ["experiment=mine/three"]])
