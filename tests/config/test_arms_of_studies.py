"""Arms of studies as a Hydra group."""

import json
from types import SimpleNamespace

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from etude.config.compose import compose
from etude.config.compose_cache import ConfigCache, expand
from etude.config.quoting import make_readable
from etude.config.resolve import as_written, resolve, resolve_valid, typed_overrides
from etude.errors import UserError
from etude.paths import shipped
from etude.study.study import load_study, study_names, value_at
from hydra_plugins.etude_studies import arm_config


@pytest.fixture(scope="module")
def configs() -> ConfigCache:
    """One for all studies: what is shared must not mix."""
    return ConfigCache()


@pytest.mark.parametrize("study", study_names())
def test_every_arm_is_valid_and_differs_from_its_baseline_only_where_it_says_and_seeds_of_it_may_share(study, configs):
    loaded = load_study(study)
    alone = {arm: compose([f"experiment={study}/{arm}", "seed=31"]) for arm in loaded.arms}
    plain = {arm: resolve_valid(config) for arm, config in alone.items()}
    assert [(config["study"], config["arm"]) for config in plain.values()] == [(study, arm) for arm in loaded.arms]
    for arm, config in alone.items():
        of_seeds = [configs.resolve([f"experiment={study}/{arm}", f"seed={seed}"]) for seed in (1, 31)]
        shared = [of_seeds[-1].config, of_seeds[-1].written, of_seeds[-1].typed]
        expected = [plain[arm], as_written(config), typed_overrides(config)]
        assert json.dumps(shared) == json.dumps(expected), f"{arm} is not, from the cache, what it is alone"
    typed = {arm: resolve(compose([*overrides, "seed=31"])) for arm, overrides in loaded.arms.items()}
    for arm in loaded.arms:
        ours = {key: value for key, value in plain[arm].items() if key not in ("study", "arm", "choices")}
        theirs = {key: value for key, value in typed[arm].items() if key not in ("study", "arm", "choices")}
        assert ours == theirs, f"{arm} is not what its overrides give when typed"
        if arm != loaded.baseline:
            base = plain[loaded.baseline]
            assert any(ours[key] != base[key] for key in ours), f"{arm} changes nothing"


def test_the_command_line_wins_over_an_arm():
    assert compose(["experiment=table3/A1", "model.heads=2"]).model.heads == 2


@pytest.mark.parametrize("named", ["[table3/A1,modern/rope]", "[ table3/A1, modern/rope ]", "table3/A1+modern/rope"])
def test_arms_in_brackets_are_one_configuration_with_what_all_of_them_change(named):
    both = resolve(compose([f"experiment={named}"]))
    typed = resolve(compose([*load_study("table3").arms["A1"], *load_study("modern").arms["rope"]]))
    assert (both["study"], both["arm"]) == ("single", "A1-rope")
    names = ("study", "arm", "choices")
    assert {k: v for k, v in both.items() if k not in names} == {k: v for k, v in typed.items() if k not in names}
    assert ConfigCache().resolve(make_readable([f"experiment={named}", "seed=2"])).config == both | {"seed": 2}
    assert expand([f"experiment={named},table3/A2", "seed=1"]) == [
        ["experiment=table3/A1+modern/rope", "seed=1"],
        ["experiment=table3/A2", "seed=1"],
    ]


def test_arms_that_contradict_each_other_are_not_combined():
    with pytest.raises(UserError, match=r"table3/A1 has model\.heads=.* and table3/A2 has model\.heads=.*: leave one"):
        compose(["experiment=[table3/A1,table3/A2]"])


def test_table_3_has_the_papers_sizes_at_full_scale():
    study = load_study("table3")
    expected = {
        "base": (6, 512, 2048, 8, 64, 64, 0.1, 0.1, 100000),
        "A1": (6, 512, 2048, 1, 512, 512, 0.1, 0.1, 100000),
        "A2": (6, 512, 2048, 4, 128, 128, 0.1, 0.1, 100000),
        "A3": (6, 512, 2048, 16, 32, 32, 0.1, 0.1, 100000),
        "A4": (6, 512, 2048, 32, 16, 16, 0.1, 0.1, 100000),
        "B1": (6, 512, 2048, 8, 16, 64, 0.1, 0.1, 100000),
        "B2": (6, 512, 2048, 8, 32, 64, 0.1, 0.1, 100000),
        "C1": (2, 512, 2048, 8, 64, 64, 0.1, 0.1, 100000),
        "C2": (4, 512, 2048, 8, 64, 64, 0.1, 0.1, 100000),
        "C3": (8, 512, 2048, 8, 64, 64, 0.1, 0.1, 100000),
        "C4": (6, 256, 2048, 8, 32, 32, 0.1, 0.1, 100000),
        "C5": (6, 1024, 2048, 8, 128, 128, 0.1, 0.1, 100000),
        "C6": (6, 512, 1024, 8, 64, 64, 0.1, 0.1, 100000),
        "C7": (6, 512, 4096, 8, 64, 64, 0.1, 0.1, 100000),
        "D1": (6, 512, 2048, 8, 64, 64, 0.0, 0.1, 100000),
        "D2": (6, 512, 2048, 8, 64, 64, 0.2, 0.1, 100000),
        "D3": (6, 512, 2048, 8, 64, 64, 0.1, 0.0, 100000),
        "D4": (6, 512, 2048, 8, 64, 64, 0.1, 0.2, 100000),
        "E1": (6, 512, 2048, 8, 64, 64, 0.1, 0.1, 100000),
        "big": (6, 1024, 4096, 16, 64, 64, 0.3, 0.1, 300000),
    }
    keys = "model.n_layers model.d_model model.d_ff model.heads model.attention.d_k model.attention.d_v model.dropout"
    assert set(study.arms) == set(expected)
    for arm, sizes in expected.items():
        config = resolve(compose([f"experiment=table3/{arm}", "scale=full"]))
        found = [value_at(config, key) for key in [*keys.split(), "loss.smoothing", "budget.max_steps"]]
        assert tuple(found) == sizes, arm
        assert config["choices"]["model/position"] == ("learned" if arm == "E1" else "sinusoidal")


@pytest.mark.parametrize("scale", ["pocket", "small"])
def test_at_a_smaller_scale_no_two_arms_become_the_same(scale):
    configs = []
    for arm in load_study("table3").arms:
        config = resolve(compose([f"experiment=table3/{arm}", f"scale={scale}"]))
        configs.append(OmegaConf.to_yaml(OmegaConf.create({k: config[k] for k in ("model", "loss", "budget")})))
    assert len(set(configs)) == 20


def test_a_glob_finds_the_arms_of_a_study():
    with initialize_config_dir(str(shipped("conf")), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        [override] = OverridesParser.create(config_loader=loader).parse_overrides(["experiment=glob(table3/*)"])
        arms = list(override.sweep_string_iterator())
    assert arms == sorted(f"table3/{arm}" for arm in load_study("table3").arms)


def test_an_arm_may_choose_several_files_of_a_group(monkeypatch):
    study = SimpleNamespace(arms={"both": ["callbacks=[ema,gradient_norms]", "callbacks.ema.decay=0.9"]})
    monkeypatch.setattr("etude.study.arm_names.load_study", lambda name: study)
    config = arm_config("mine/both")
    assert config.defaults == [{"override /callbacks": ["ema", "gradient_norms"]}, "_self_"]
    assert config.callbacks.ema.decay == 0.9
