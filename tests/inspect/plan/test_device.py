"""Rates of named devices, and of the machine at hand."""

import math

import pytest

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.inspect.plan import device as module
from etude.inspect.plan.device import load_device, measure_device
from etude.paths import shipped
from etude.tasks.size import measure_size
from etude.yaml_file import read_yaml

NAMES = list(read_yaml(shipped("conf") / "devices.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_every_device_reaches_a_share_of_its_peak_and_costs_what_it_says(name, has_bf16):
    rates = read_yaml(shipped("conf") / "devices.yaml")[name]
    assert set(rates) - {"memory"} == {"full", "half", "share", "price"}
    assert 0 < rates["share"] <= 1
    found = load_device(name)
    assert found.flops("32-true") == pytest.approx(rates["full"] * rates["share"] * 1e12)
    mixed = "half" if has_bf16 or "memory" in rates else "full"
    assert found.flops("bf16-mixed") == pytest.approx(rates[mixed] * rates["share"] * 1e12)
    assert found.price == rates["price"] >= 0
    assert found.memory == rates.get("memory", math.inf) * 1e9


def test_an_unknown_device_is_told_with_the_nearest():
    with pytest.raises(UserError, match=r"device=h10 is not in conf/devices.yaml; did you mean h100"):
        load_device("h10")


@pytest.mark.parametrize(
    "rates",
    [
        "{full: 10, share: 0.3, price: 1}",
        "{full: 10, half: 20, share: 0, price: 1}",
        "{full: 10, half: 20, share: 0.3, price: 1, memory: 24 GB}",
        "{full: 10, half: 20, share: 0.3, price: 1, memory: null}",
        "fast",
        "3",
    ],
)
def test_a_device_of_ones_own_without_its_rates_is_refused_by_file(rates, tmp_path, monkeypatch):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "devices.yaml").write_text(f"mine: {rates}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"conf/devices.yaml: mine must have full, half and share above 0, price"):
        load_device("mine")
    (tmp_path / "conf" / "devices.yaml").write_text("- mine\n")
    with pytest.raises(UserError, match=r"conf/devices\.yaml must map names of devices to their rates"):
        load_device("mine")
    (tmp_path / "conf" / "devices.yaml").write_text("")
    assert load_device("h100").name == "h100"


@pytest.fixture
def clock(monkeypatch):
    """Time goes on by so many seconds for each step that is measured."""

    def start(seconds: float) -> None:
        now = iter(float(n // 2 + n % 2) * seconds for n in range(10**6))  # each step asks twice
        monkeypatch.setattr(module.time, "perf_counter", lambda: next(now))

    return start


@pytest.fixture
def config():
    sizes = ["model.d_model=16", "model.d_ff=16", "model.heads=2", "model.n_layers=1", "data.vocab_size=40"]
    return resolve(compose([*sizes, "budget.source_tokens=300", "budget.target_tokens=300"]))


def test_where_steps_are_quick_the_rate_is_that_of_whole_batches(clock, config):
    clock(0.25)
    a_step = 12 * measure_size(config).training_flops(25, 25)  # 12 sentences of 25 pieces fill 300
    assert measure_device(config).full == pytest.approx(a_step / 0.25)


def test_where_a_step_takes_long_one_sentence_has_to_do(clock, config):
    clock(30.0)
    assert measure_device(config).full == pytest.approx(measure_size(config).training_flops(25, 25) / 30.0)


def test_what_was_measured_costs_nothing_and_says_so(clock, config):
    clock(1.0)
    found = measure_device(config)
    assert found.price == 0
    assert "measured" in found.name
    assert math.isfinite(found.full)
