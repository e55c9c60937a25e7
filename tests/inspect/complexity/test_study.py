"""Where layers are measured, and that a measurement goes on where it stopped."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import UserError
from etude.files import read_json, write_json
from etude.inspect.complexity import study as measuring
from etude.inspect.complexity.study import cells, measure_study, stretch
from etude.runs.measurements import place
from etude.studies.measured import OUTWEIGHS, MeasuredStudy, load_measured

SMALL = ["n=4,8", "d=8,16", "k=3,5", "r=3,5", "repeats=1"]


@pytest.fixture
def study() -> MeasuredStudy:
    return load_measured("table1", SMALL)


def test_every_n_meets_every_d_and_every_kernel_the_largest_of_both():
    sizes = {"n": [1, 2], "d": [3, 4], "k": [5, 7, 9], "r": [1]}
    assert cells(sizes, ["n", "d"]) == [{"n": n, "d": d} for n in (1, 2) for d in (3, 4)]
    grid = [{"n": n, "d": d, "k": 5} for n in (1, 2) for d in (3, 4)]
    assert cells(sizes, ["n", "d", "k"]) == [*grid, {"n": 2, "d": 4, "k": 7}, {"n": 2, "d": 4, "k": 9}]
    assert cells(sizes, ["n", "k"]) == [{"n": n, "k": k} for n, k in [(1, 5), (2, 5), (2, 7), (2, 9)]]


SIZE = st.lists(st.integers(1, 300), min_size=1, max_size=4, unique=True).map(sorted)
ODD = SIZE.map(lambda sizes: [2 * size + 1 for size in sizes])


@given(sizes=st.fixed_dictionaries({"n": SIZE, "d": SIZE, "k": ODD, "r": ODD}), pair=st.permutations("ndkr"))
def test_where_one_size_outweighs_another_it_does_everywhere_and_grows_as_before(sizes, pair):
    large, small, *_ = pair
    found = stretch(f"{large} ≫ {small}", sizes)
    if small != "n" or large == "d":  # nothing outweighs n but d: a window is no longer than the sentence
        assert min(found[large]) >= OUTWEIGHS * max(found[small])
    assert [size / found[large][0] for size in found[large]] == [size / sizes[large][0] for size in sizes[large]]
    if large in "kr":
        assert max(found[large]) <= min(found["n"])
        assert all(size % 2 for size in found[large])
    assert stretch("anywhere", sizes) == sizes


def test_what_is_found_is_kept_with_its_setting(study, tmp_path):
    assert [layer for layer, seconds in measure_study(study, tmp_path) if seconds is not None] == [
        row.name for row in study.rows
    ]
    for row in study.rows:
        found = read_json(place(study, row, tmp_path))
        assert found["sizes"] == {symbol: study.sizes[symbol] for symbol in row.symbols}
        assert len(found["costs"]) == 4 + ("k" in row.symbols) + ("r" in row.symbols)
        assert [one["n"] for one in found["operations"]] == [4, 8]
        assert found["flops"].keys() == row.flops.keys()
    paths = {row.name: read_json(place(study, row, tmp_path))["path"] for row in study.rows}
    reached = {name: [one["path"] for one in found] for name, found in paths.items()}
    assert reached == {
        "self_attention": [1, 1],
        "recurrent": [4, 8],
        **{name: [3, 7, 4] for name in ("convolutional", "separable", "restricted")},  # the last with two neighbours
    }
    assert paths["restricted"] == [{"n": n, "r": r, "path": path} for n, r, path in [(4, 3, 3), (8, 3, 7), (8, 5, 4)]]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the layers that are measured from here on, each of which takes no time."""
    names: list[str] = []

    def measure(layer, sizes, repeats):
        if layer.row.name in names:
            raise KeyboardInterrupt
        names.append(layer.row.name)
        return {"costs": []}

    monkeypatch.setattr(measuring, "measure_layer", measure)
    return names


def test_an_interrupted_measurement_goes_on_with_the_next_layer(study, tmp_path, measured):
    measured.append("convolutional")
    with pytest.raises(KeyboardInterrupt):
        list(measure_study(study, tmp_path))
    measured[:] = []
    told = dict(measure_study(study, tmp_path))
    assert measured == ["convolutional", "separable", "restricted"]
    assert [layer for layer, seconds in told.items() if seconds is None] == ["self_attention", "recurrent"]


def test_a_changed_setting_is_measured_beside_the_other(study, tmp_path, measured):
    list(measure_study(study, tmp_path))
    measured[:] = []
    list(measure_study(load_measured("table1", [*SMALL, "k=3,7"]), tmp_path))
    assert measured == ["convolutional", "separable"]  # the others have no kernel
    assert all(place(study, row, tmp_path).is_file() for row in study.rows)
    measured[:] = []
    list(measure_study(load_measured("table1", [*SMALL, "repeats=2"]), tmp_path))
    assert len(measured) == len(study.rows)


def test_a_changed_config_is_measured_again(study, tmp_path, measured):
    list(measure_study(study, tmp_path))
    file = place(study, study.rows[1], tmp_path)
    kept = read_json(file)
    write_json(file, kept | {"model": kept["model"] | {"width": "another"}})
    measured[:] = []
    list(measure_study(study, tmp_path))
    assert measured == ["recurrent"]
    assert read_json(file) == kept


def test_a_torn_file_is_measured_again(study, tmp_path, measured):
    list(measure_study(study, tmp_path))
    place(study, study.rows[0], tmp_path).write_text('{"model": ')
    measured[:] = []
    list(measure_study(study, tmp_path))
    assert measured == ["self_attention"]


def test_what_cannot_be_built_at_some_size_is_refused_before_anything_is_measured(tmp_path: Path, measured):
    with pytest.raises(UserError, match=r"model.heads=8 does not divide model.d_model=12"):
        list(measure_study(load_measured("table1", [*SMALL, "d=8,12"]), tmp_path))
    assert not measured


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("model.encoder.kernle=5", "kernle"),
        ("model.encoder.kernel=5", "model.encoder.kernel is what the table varies: say k="),
        ("model.attention.window=5", "model.attention.window is what the table varies: say r="),
        ("model.d_model=64", "model.d_model is what the table varies: say d="),
        ("model/attention=linear", "model/attention is what the table varies: a layer of your own is a row"),
    ],
)
def test_a_key_that_says_nothing_of_a_layer_is_one_sentence(word, sentence, tmp_path, measured):
    with pytest.raises(UserError, match=sentence) as caught:
        list(measure_study(load_measured("table1", [*SMALL, word]), tmp_path))
    assert "\n" not in str(caught.value)
    assert not measured


def test_a_change_is_of_the_layers_that_have_its_key(tmp_path, measured):
    [lstm] = [
        layer
        for layer in measuring.compose_layers(load_measured("table1", ["model.encoder.cell=lstm"]))
        if layer.config.model.encoder.get("cell")
    ]
    assert (lstm.row.name, lstm.config.model.encoder.cell) == ("recurrent", "lstm")
