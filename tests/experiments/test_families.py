"""The families of Table 1 at equal parameters and computation, and how far each of them can see."""

import runpy

import pytest
import torch

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.paths import shipped
from etude.study.study import load_study
from etude.tasks import build
from etude.tasks.size import measure_size

STUDY = load_study("families")
WORDS = 1151  # of the whole corpus
REACH = {"convolution": 7, "restricted": 13}
SMALL = [
    *("budget=smoke", "logger=none", "data.train_pairs=400", "data.valid_pairs=20", "data.test_pairs=200"),
    *("data.vocab_size=2000",),
]  # fmt: skip


def config(arm: str) -> dict:
    return resolve(compose([f"experiment=families/{arm}", f"data.vocab_size={WORDS}"]))


@pytest.mark.parametrize("arm", STUDY.arms)
def test_every_family_has_as_many_parameters_and_takes_as_many_operations(arm):
    ours, base = (measure_size(config(name)) for name in (arm, STUDY.baseline))
    assert ours.parameters == pytest.approx(base.parameters, rel=0.07)
    assert ours.training_flops(1, 16) == pytest.approx(base.training_flops(1, 16), rel=0.05)


@pytest.mark.parametrize("arm", STUDY.arms)
def test_each_family_sees_a_subject_at_the_distances_that_the_readme_says_and_no_farther(arm):
    """The prediction of word n depends on the word d before it: seen by changing that one."""
    model = build.model(config(arm), WORDS).double().eval()
    words = torch.randint(4, WORDS, (1, 26), generator=torch.Generator().manual_seed(5))
    source, mask = torch.full((1, 1), 2), torch.ones(1, 1, dtype=torch.bool)
    last = words.size(1)  # the word that is predicted, from 0; `words` are those before it
    seen = []
    with torch.no_grad():
        before = model(source, mask, words)[0, -1]
        for distance in range(1, last):
            changed = words.clone()
            changed[0, last - distance] = 4 + (changed[0, last - distance] - 3) % (WORDS - 4)
            if not torch.equal(model(source, mask, changed)[0, -1], before):
                seen.append(distance)
    assert seen == list(range(1, REACH.get(arm, last - 1) + 1))


def test_the_readme_shows_every_arm():
    readme = (shipped("experiments") / "families" / "README.md").read_text(encoding="utf-8")
    assert [arm for arm in STUDY.arms if f"| `{arm}` |" not in readme] == []


def test_the_picture_has_the_accuracies_of_runs_taken_together_where_there_are_enough(tmp_path):
    drawing = runpy.run_path(str(shipped("experiments") / "families" / "draw.py"))
    answers = {"right": ["sleep 2"] * 30 + ["sleep 3"] * 29, "half": ["sleep 2", "sleeps 2"] * 15 + ["sleep 3"] * 29}
    for name, said in answers.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "hypotheses.test.txt").write_text("".join(f"{line}\n" for line in said))
        (tmp_path / name / "references.test.txt").write_text("sleep 2\n" * 30 + "sleep 3\n" * 29)
    assert drawing["accuracies"]([tmp_path / name for name in answers]) == {2: 75}
    assert drawing["draw"]({"one": {1: 100, 2: 40}}).count('points="60,20.0 90,200.0"') == 1


@pytest.mark.slow
def test_the_sweep_and_its_report_finish_and_show_accuracy_by_distance(swept):
    shown, table = swept("families", *SMALL)
    assert "BLEU" not in shown
    assert [metric.label for metric in STUDY.metrics.values() if metric.label not in table] == []
    assert [arm for arm in STUDY.arms if arm not in table] == []
