"""Measurements lie where their setting says, and are read from there."""

import pytest

from etude.files import write_json
from etude.runs.measurements import note_on_measurements, place, read_measurements
from etude.runs.records import studies_in
from etude.studies.measured import load_measured


@pytest.mark.parametrize(
    ("words", "moved"),
    [
        (["n=2,4"], "self_attention recurrent convolutional separable restricted"),
        (["k=3,7"], "convolutional separable"),
        (["r=3,7"], "restricted"),
        (["repeats=9"], "self_attention recurrent convolutional separable restricted"),
        (["scale=pocket"], ""),
        (["model.encoder.cell=lstm"], "self_attention recurrent convolutional separable restricted"),
    ],
)
def test_another_setting_has_another_place_and_the_same_has_the_same(words, moved, tmp_path):
    usual, other = load_measured("table1"), load_measured("table1", words)
    places = {row.name: (place(usual, row, tmp_path), place(other, row, tmp_path)) for row in usual.rows}
    assert [name for name, (one, two) in places.items() if one != two] == moved.split()


def test_only_what_was_measured_with_the_setting_is_read(tmp_path):
    study = load_measured("table1")
    recurrent = next(row for row in study.rows if row.name == "recurrent")
    write_json(place(study, recurrent, tmp_path), {"costs": []})
    write_json(place(load_measured("table1", ["n=2"]), study.rows[0], tmp_path), {"costs": []})
    assert read_measurements(study, tmp_path) == {"recurrent": {"costs": []}}
    assert note_on_measurements(study, tmp_path) == (
        "table1 is measured, not trained: 1 of 5 layers are; `etude sweep table1` measures self_attention, "
        "convolutional, separable, restricted."
    )
    assert studies_in(tmp_path) == (["table1"], [])
