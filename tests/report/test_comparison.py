"""What is said of an arm beside the baseline, against the statistics and scipy asked directly."""

import json
import math
import random
import re
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest
from sacrebleu import corpus_bleu
from scipy import stats

from etude.errors import UserError
from etude.report import make_report, report, results, results_of_csv
from etude.report.comparison import ArmResult, Compared
from etude.report.render.rows import make_rows
from etude.report.statistics import Scores, combined_test, count, holm, moderate, moderated_test, resample
from etude.store.run_dir import RunDir
from etude.study.metrics import Metric

from .conftest import declared

Make = Callable[..., RunDir]

WORDS = ["the", "a", "old", "young", "man", "woman", "sees", "hears", "dog", "cat", "in", "under", "garden", "again"]
_RANDOM = random.Random(7)
REFERENCES = [" ".join(_RANDOM.choices(WORDS, k=_RANDOM.randint(6, 14))) for _ in range(80)]


def translated(right: float, seed: int) -> list[str]:
    """The references with as many words right as a share says."""
    random_words = random.Random(seed)
    return [
        " ".join(word if random_words.random() < right else random_words.choice(WORDS) for word in line.split())
        for line in REFERENCES
    ]


@pytest.fixture
def make_arm(make_run: Make) -> Callable[..., list[RunDir]]:
    """Fabricates the seeds of an arm, each with its share of right words and its perplexity."""

    def make(arm: str, rights: list[float], ppl: list[float] | None = None, **more: object) -> list[RunDir]:
        perplexities = ppl or [3.0 + 0.1 * k for k in range(len(rights))]
        keys = {"references": REFERENCES} | more
        return [
            make_run(arm, seed, ppl=perplexities[seed - 1], translations=translated(right, 100 * seed), **keys)
            for seed, right in enumerate(rights, start=1)
        ]

    return make


MakeArm = Callable[..., list[RunDir]]


def compared(runs_dir: Path, baseline: str = "") -> Compared:
    return results("heads", runs_dir).compare(baseline)


def arms(made: Compared) -> dict[str, ArmResult]:
    return {arm.arm: arm for arm in made.arms}


def footnotes(made: Compared) -> str:
    return "\n".join(make_rows(made).sentences)


def told(made: Compared) -> str:
    return "\n".join(made.notes)


def test_an_arm_is_tested_by_the_combined_test_for_bleu_and_in_nats_for_perplexity(
    runs_dir: Path, make_arm: MakeArm
) -> None:
    shares = {"base": [0.90, 0.91, 0.92], "A1": [0.80, 0.82, 0.81], "A2": [0.90, 0.89, 0.92]}
    perplexities = {"base": [3.0, 3.1, 3.2], "A1": [4.0, 4.2, 4.1], "A2": [3.0, 3.1, 3.4]}
    for arm, rights in shares.items():
        make_arm(arm, rights, perplexities[arm])
    found = arms(compared(runs_dir))
    samples = {
        arm: resample(count(arm, [translated(right, 100 * seed) for seed, right in enumerate(rights, 1)], REFERENCES))
        for arm, rights in shares.items()
    }
    losses = {arm: Scores(arm, [math.log(ppl) for ppl in its]) for arm, its in perplexities.items()}
    prior = moderate(losses.values())
    assert prior
    by_hand = {arm: combined_test(samples[arm], samples["base"]) for arm in ("A1", "A2")}
    for arm, expected in by_hand.items():
        against = found[arm].against
        assert against is not None
        assert against.differences["bleu"].test == expected
        assert against.differences["ppl"].test == moderated_test(losses[arm], losses["base"], prior)
        ratio = math.prod(perplexities[arm]) / math.prod(perplexities["base"])
        assert against.differences["ppl"].test.difference == pytest.approx(math.log(ratio) / 3)
    corrected = holm({arm: test.p for arm, test in by_hand.items() if test.p is not None})
    assert {arm: found[arm].against.differences["bleu"].holm for arm in by_hand} == corrected  # type: ignore[union-attr]
    assert found["base"].against is None


def test_stars_hang_on_the_corrected_values(runs_dir: Path, make_arm: MakeArm) -> None:
    make_arm("base", [0.90, 0.91, 0.92], [3.0, 3.1, 3.2])
    make_arm("A1", [0.50, 0.51, 0.52], [3.0, 3.1, 3.2])
    make_arm("A2", [0.90, 0.90, 0.93], [9.0, 9.1, 9.2])
    found = {arm: its.against for arm, its in arms(compared(runs_dir)).items() if its.against}
    stars = [[one.differences[metric].star for metric in ("bleu", "ppl")] for one in found.values()]
    assert stars == [[True, False], [False, True]]


def test_one_seed_is_never_starred_though_the_sentences_tell_the_runs_apart(runs_dir: Path, make_arm: MakeArm) -> None:
    make_arm("base", [0.95])
    make_arm("A1", [0.5])
    against = arms(compared(runs_dir))["A1"].against
    assert against is not None
    bleu = against.differences["bleu"]
    assert bleu.bootstrap is not None
    assert bleu.bootstrap.p is not None
    assert bleu.bootstrap.p < 0.01
    assert (bleu.test.p, bleu.holm, bleu.star) == (None, None, False)
    assert "one seed" in bleu.test.why_not


def test_the_mean_and_its_interval_are_students(runs_dir: Path, make_arm: MakeArm) -> None:
    perplexities = [3.0, 3.5, 3.1]
    make_arm("base", [0.9, 0.9, 0.9], perplexities)
    mean = arms(compared(runs_dir))["base"].means["ppl"]
    assert mean is not None
    low, high = stats.t.interval(0.95, 2, loc=sum(perplexities) / 3, scale=stats.sem(perplexities))
    assert mean.interval == pytest.approx((low, high))


def test_an_interval_that_rounds_to_nothing_is_not_said_to_be_nothing(runs_dir: Path, make_arm: MakeArm) -> None:
    make_arm("base", [0.9, 0.9, 0.9], [3.0, 3.001, 3.002])
    make_arm("A1", [0.9, 0.9, 0.9], [3.0, 3.1, 3.2])
    rows = {row.texts[0]: row.texts for row in report("heads", runs_dir, {}).rows.rows}
    assert "3.00 ± <0.01" in rows["base"]
    assert "3.10 ± 0.25" in rows["A1"]


def test_seeds_beyond_those_that_the_study_fixes_are_named_and_what_they_do(runs_dir: Path, make_arm: MakeArm) -> None:
    declared(runs_dir, seeds=2)
    make_arm("base", [0.88, 0.92, 0.90])
    make_arm("A1", [0.88, 0.86])
    make_arm("A2", [0.88])
    made = compared(runs_dir)
    assert "More seeds than the 2 that the study fixes: base. Seeds added after a look" in footnotes(made)
    assert "Fewer seeds than the 2 that the study fixes: A2." in footnotes(made)


def test_an_arm_may_be_held_against_another_than_the_baseline(runs_dir: Path, make_arm: MakeArm) -> None:
    declared(runs_dir, against={"A2": "A1"})
    for arm, ppl in (("base", 2.0), ("A1", 3.0), ("A2", 4.0)):
        make_arm(arm, [0.9, 0.91], [ppl, 1.1 * ppl])
    made = compared(runs_dir)
    found = {arm: its.against for arm, its in arms(made).items() if its.against}
    assert {arm: one.reference for arm, one in found.items()} == {"A1": "base", "A2": "A1"}
    assert found["A2"].differences["ppl"].test.difference == pytest.approx(math.log(4 / 3))
    assert "Held against another arm than base: A2 against A1." in footnotes(made)


def test_an_arm_on_another_text_is_held_against_its_reference_on_that(runs_dir: Path, make_arm: MakeArm) -> None:
    """Table 2 has two languages, each with a base and a big model."""
    declared(runs_dir, against={"A2": "A1"})
    french = [line.upper() for line in REFERENCES]
    make_arm("base", [0.9, 0.91], [2.0, 2.2])
    make_arm("A1", [0.9, 0.91], [3.0, 3.3], store="s1", references=french)
    make_arm("A2", [0.9, 0.91], [4.0, 4.4], store="s1", references=french)
    made = compared(runs_dir)
    found = arms(made)
    assert found["A1"].against is not None
    assert found["A1"].against.differences == {}
    assert found["A2"].against is not None
    assert found["A2"].against.differences["ppl"].test.difference == pytest.approx(math.log(4 / 3))
    assert found["A2"].against.differences["bleu"].test.difference == 0
    assert found["A2"].scores == {}  # nothing of it is compared with the baseline
    assert "Not compared: A1: " in told(made)
    assert "store s1 (baseline: s0)" in footnotes(made)  # of A1


def test_an_arm_of_one_seed_has_the_interval_in_which_another_seed_of_the_baseline_would_lie(
    runs_dir: Path, make_arm: MakeArm
) -> None:
    make_arm("base", [0.9, 0.91, 0.92], [2.0, 2.1, 2.2])
    make_arm("A1", [0.9], [3.0])
    against = arms(compared(runs_dir))["A1"].against
    assert against is not None
    deviation = statistics.stdev(map(math.log, (2.0, 2.1, 2.2)))
    reach = stats.t.isf(0.025, 2) * deviation * math.sqrt(1 + 1 / 3)
    ppl = against.differences["ppl"]
    assert ppl.test.interval == pytest.approx((ppl.test.difference - reach, ppl.test.difference + reach))
    assert (ppl.test.p, ppl.star) == (None, False)


def test_what_hides_in_a_small_test_set_no_seed_will_show(runs_dir: Path, make_run: Make) -> None:
    """Seeds that hardly differ, and two arms that are good at different sentences."""
    halves = [translated(0.6, 1)[:40] + REFERENCES[40:], REFERENCES[:40] + translated(0.62, 2)[40:]]
    for arm, lines in zip(("base", "A1"), halves, strict=True):
        for seed, last in ((1, "dog cat"), (2, "dog dog")):
            make_run(arm, seed, translations=[*lines[:-1], last], references=REFERENCES)
    made = compared(runs_dir)
    against = arms(made)["A1"].against
    assert against is not None
    spread = against.differences["bleu"].spread
    assert spread is not None
    assert spread.of_test_sets > 10 * spread.of_run
    assert "a true difference of so much: 0.5 BLEU no number" in footnotes(made)


def test_without_references_bleu_is_not_tested_and_perplexity_is(runs_dir: Path, make_run: Make) -> None:
    for seed in (1, 2):
        make_run("base", seed, bleu=40.0 + seed, ppl=3.0 + seed)
        make_run("A1", seed, bleu=30.0 + seed, ppl=5.0 + seed)
    made = compared(runs_dir)
    against = arms(made)["A1"].against
    assert against is not None
    bleu = against.differences["bleu"]
    assert (bleu.test.difference, bleu.test.p, bleu.holm) == (-10.0, None, None)
    assert against.differences["ppl"].holm is not None
    assert "Not compared: all arms: the runs have no references.test.txt" in told(made)


def test_references_that_another_run_of_the_same_text_kept_will_do(runs_dir: Path, make_arm: MakeArm) -> None:
    for run in make_arm("base", [0.9, 0.91]):
        run.references_file.unlink()
    make_arm("A1", [0.8, 0.81])
    against = arms(compared(runs_dir))["A1"].against
    assert against is not None
    assert against.differences["bleu"].holm is not None


def test_arms_tested_on_other_sentences_are_refused_by_name(runs_dir: Path, make_arm: MakeArm) -> None:
    make_arm("base", [0.9, 0.91])
    make_arm("A1", [0.9, 0.91], references=REFERENCES[::-1], store="other")
    make_arm("A2", [0.8, 0.81])
    made = compared(runs_dir)
    found = arms(made)
    assert found["A1"].against is not None
    assert found["A1"].against.differences == {}
    assert found["A2"].against is not None
    assert found["A2"].against.differences["bleu"].holm is not None
    assert "Not compared: A1: its references are not base's." in told(made)


def test_arms_scored_otherwise_are_refused_by_name(runs_dir: Path, make_arm: MakeArm) -> None:
    make_arm("base", [0.9, 0.91])
    make_arm("A1", [0.9, 0.91], signature="nrefs:1|tok:char")
    made = compared(runs_dir)
    found = arms(made)["A1"]
    assert found.against is not None
    assert "bleu" not in found.against.differences
    assert found.why_not == ["its sacreBLEU signature is nrefs:1|tok:char, base's nrefs:1|tok:13a"]
    assert f"Not compared: A1: {found.why_not[0]}." in told(made)


def test_sentences_are_split_into_words_as_their_score_was(runs_dir: Path, make_run: Make) -> None:
    """In Chinese, where no spaces are, a line is one word to the tokenizer that sacreBLEU has for others."""
    chinese = [line.replace(" ", "") for line in REFERENCES]
    for arm, shares in {"base": [0.9, 0.91], "A1": [0.8, 0.81]}.items():
        for seed, share in enumerate(shares, start=1):
            ours = [line.replace(" ", "") for line in translated(share, seed)]
            bleu = corpus_bleu(ours, [chinese], tokenize="char").score
            made = {"translations": ours, "references": chinese, "signature": "nrefs:1|tok:char|smooth:exp"}
            make_run(arm, seed, bleu=bleu, **made)
    found = arms(compared(runs_dir))["A1"]
    assert found.why_not == []
    assert found.against is not None
    assert found.against.differences["bleu"].holm is not None


def test_sentences_are_compared_in_lower_case_where_their_score_was(runs_dir: Path, make_run: Make) -> None:
    loud = [line.upper() for line in REFERENCES]
    for arm, share in {"base": 0.9, "A1": 0.8}.items():
        ours = translated(share, 1)
        bleu = corpus_bleu(ours, [loud], lowercase=True).score
        make_run(arm, bleu=bleu, translations=ours, references=loud, signature="nrefs:1|case:lc|tok:13a")
    assert arms(compared(runs_dir))["A1"].why_not == []


def test_a_seed_that_was_scored_otherwise_than_the_others_is_named(runs_dir: Path, make_run: Make) -> None:
    make_run("base", 1)
    make_run("base", 2)
    make_run("base", 3, signature="nrefs:1|tok:char")
    made = compared(runs_dir)
    assert "Not compared: base: its sacreBLEU signature is nrefs:1|tok:char" in told(made)
    assert "base's nrefs:1|tok:13a (seed 3)." in told(made)


def test_other_word_pieces_of_the_same_sentences_part_perplexity_and_not_bleu(
    runs_dir: Path, make_arm: MakeArm
) -> None:
    make_arm("base", [0.9, 0.91])
    make_arm("A1", [0.8, 0.81], store="more pieces")
    made = compared(runs_dir)
    found = arms(made)["A1"].against
    assert found is not None
    assert "ppl" not in found.differences
    assert found.differences["bleu"].holm is not None
    assert "A1: its perplexity is over other text or other subwords." in told(made)


def test_without_references_the_fingerprint_tells_that_the_text_is_the_same(runs_dir: Path, make_run: Make) -> None:
    """As of language models, whose bits per byte are there to compare tokenizers."""
    for arm, store, text in (
        ("base", "s0", "0123"),
        ("A1", "more pieces", "0123"),
        ("A2", "s2", "4567"),
        ("E1", "s3", ""),
    ):
        make_run(arm, store=store, text=text)
    assert {arm.arm: set(arm.scores) for arm in compared(runs_dir).arms if arm.runs} == {
        "base": {"ppl", "bleu"}, "A1": {"bleu"}, "A2": set(), "E1": set()
    }  # fmt: skip


def test_what_is_not_compared_with_the_baseline_is_not_ranked_with_it_either(runs_dir: Path, make_run: Make) -> None:
    make_run("base", ppl=3.0)
    make_run("A1", ppl=4.0)
    for arm in ("A2", "E1", "long"):
        make_run(arm, store="other pieces")
    made = compared(runs_dir)
    found = {arm.arm: set(arm.scores) for arm in made.arms}
    assert found == {"base": {"ppl", "bleu"}, "A1": {"ppl", "bleu"}, "A2": set(), "E1": set(), "long": set()}
    assert made.ranks["ppl"].spearman.arms == 2


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe broken\n"])
def test_damaged_references_of_one_arm_leave_the_others_alone(damage: bytes, runs_dir: Path, make_arm: MakeArm) -> None:
    make_arm("base", [0.9, 0.91])
    make_arm("A1", [0.8, 0.81])
    damaged = make_arm("A2", [0.8, 0.81])[0].references_file
    damaged.write_bytes(damage)
    made = compared(runs_dir)
    found = arms(made)
    assert found["A1"].against is not None
    assert found["A1"].against.differences["bleu"].holm is not None
    assert found["A2"].against is not None
    assert "bleu" not in found["A2"].against.differences
    assert f"Not compared: A2: {damaged}" in told(made)


def test_a_copied_directory_is_no_second_seed(runs_dir: Path, make_arm: MakeArm) -> None:
    for arm in ("base", "A1"):
        [run] = make_arm(arm, [0.9])
        shutil.copytree(run.path, run.path.with_name(f"{run.path.name}0"))
    made = compared(runs_dir)
    assert [len(arm.runs) for arm in made.arms[:2]] == [1, 1]
    assert not made.several_seeds
    assert "\n".join(made.left_out).count("the same run as") == 2


def test_a_directory_copied_to_another_arm_is_no_run_of_it(runs_dir: Path, make_arm: MakeArm) -> None:
    [run] = make_arm("base", [0.9])
    copy = run.path.parent.with_name("A1") / run.path.name
    shutil.copytree(run.path, copy)
    made = compared(runs_dir)
    assert [bool(arm.runs) for arm in made.arms[:2]] == [True, False]
    assert f"Left out: {copy}, which is a run of the arm base." in made.left_out


def test_translations_that_are_too_few_or_score_otherwise_are_named(runs_dir: Path, make_arm: MakeArm) -> None:
    make_arm("base", [0.9, 0.91])
    short, swapped = make_arm("A1", [0.8, 0.81])[1], make_arm("A2", [0.8, 0.81])[0]
    short.hypotheses_file.write_text("one line\n")
    swapped.hypotheses_file.write_text("\n".join(REFERENCES) + "\n")
    made = compared(runs_dir)
    found, notes = arms(made), told(made)
    assert f"A1: {short.hypotheses_file} has 1 lines for 80 references." in notes
    assert f"A2: the translations in {swapped.path} score 100.00 BLEU, where its result says" in notes
    for arm in ("A1", "A2"):
        against = found[arm].against
        assert against is not None
        assert against.differences["bleu"].test.p is None


@pytest.mark.parametrize("ppl", [math.inf, math.nan])
def test_a_run_that_diverged_enters_no_mean_and_is_named(ppl: float, runs_dir: Path, make_run: Make) -> None:
    make_run("base", 1, ppl=ppl)
    make_run("base", 2, ppl=2.0)
    make_run("A1", 1, ppl=ppl)
    made = compared(runs_dir)
    found = arms(made)
    assert found["base"].means["ppl"].value == 2.0
    assert ([run.seed for run in found["base"].diverged], found["base"].seeds) == ([1], [2])
    assert (found["A1"].means, found["A1"].against) == ({}, None)
    assert f"base, seed 1, diverged (the test perplexity is {ppl}): it enters no mean." in told(made)


def test_a_baseline_that_was_stopped_before_it_was_scored_takes_nobodys_comparison_with_it(
    runs_dir: Path, make_run: Make
) -> None:
    """The arms that have scores are measured as each other were."""
    stopped = make_run("base", ppl=math.nan)
    result = stopped.result()
    result["test"] = {"perplexity": math.nan, "bleu": math.nan, "sentences": 0, "tokens": 0}
    stopped.result_file.write_text(json.dumps(result))
    make_run("A1", ppl=3.0, translations=REFERENCES, references=REFERENCES)
    made = compared(runs_dir)
    found = arms(made)
    assert set(found["A1"].scores) == {"ppl", "bleu"}
    assert "Not compared" not in told(made)


def test_a_score_whose_square_is_no_float_is_not_compared(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("arm,seed,loss\nbase,1,1\nbase,2,2\nx,1,1e200\nx,2,2e200\n")
    found = results_of_csv(file, metrics=[Metric("loss", "loss", "loss", "lower")]).compare()
    assert "Not compared: x: its loss is 1e+200" in " ".join(found.notes)


def test_the_sentences_of_a_csv_need_not_be_known_for_the_whole_test_set_to_be(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("arm,seed,test_bleu,test_pairs\nbase,1,30,100\nx,1,32,100\n")
    assert "All arms: seed 1; tested on 100 sentences." in make_report(results_of_csv(file)).rows.sentences


def test_where_every_run_diverged_there_is_still_a_table(runs_dir: Path, make_run: Make) -> None:
    make_run("base", ppl=math.inf)
    assert [arm.means for arm in compared(runs_dir).arms] == [{}] * 5


def test_more_or_less_than_the_baselines_budget_is_said_in_multiples_of_it(runs_dir: Path, make_run: Make) -> None:
    make_run("base", tokens=1000, flops=5e9)
    make_run("A1", tokens=1050, flops=1e10)
    make_run("A2", parameters=1_052_246, tokens=500)
    found = arms(compared(runs_dir))
    assert found["A1"].budget_differs == ["2.00 × the FLOPs"], "5 % more tokens are about the same"
    assert found["A2"].budget_differs == ["2.00 × the parameters", "0.50 × the tokens"]
    assert found["base"].budget_differs == []


def test_any_arm_may_be_the_baseline(runs_dir: Path, make_arm: MakeArm) -> None:
    make_arm("base", [0.9, 0.91])
    make_arm("A1", [0.8, 0.81])
    made = report("heads", runs_dir, {}, "A1")
    one, other = arms(compared(runs_dir)), arms(made.compared)
    assert one["A1"].against is not None
    assert other["base"].against is not None
    there, back = (its.against.differences["bleu"].test.difference for its in (one["A1"], other["base"]))
    assert there == pytest.approx(-back)
    heads = [column.header for column in made.rows.columns].index("h")
    assert [row.texts[heads] for row in made.rows.rows[:2]] == ["8", "1"], "an arm that is not as the baseline says how"
    with pytest.raises(UserError, match=re.escape("heads has no arm 'A3'; did you mean A2 or A1?")):
        compared(runs_dir, "A3")


def test_without_the_baseline_arms_stand_alone(runs_dir: Path, make_run: Make) -> None:
    make_run("A1", 1, ppl=3.0)
    make_run("A1", 2, ppl=4.0)
    found = arms(compared(runs_dir))
    assert found["A1"].means["ppl"].value == 3.5
    assert found["A1"].against is None
    assert not found["base"].runs


def test_the_order_of_the_arms_is_correlated_with_the_papers(runs_dir: Path, make_run: Make) -> None:
    (runs_dir.parent / "experiments" / "heads" / "paper.yaml").write_text(
        "arms:\n"
        + "".join(
            f"  {arm}: {{ppl: {ppl}}}\n"
            for arm, ppl in zip(("base", "A1", "A2", "E1", "long"), range(1, 6), strict=True)
        )
    )
    ours = [3.0, 2.0, 4.0, 6.0, 5.0]
    for arm, ppl in zip(("base", "A1", "A2", "E1", "long"), ours, strict=True):
        make_run(arm, ppl=ppl)
    ranks = compared(runs_dir).ranks
    assert ranks["ppl"].spearman.value == pytest.approx(stats.spearmanr(ours, range(5)).statistic)
    assert ranks["ppl"].kendall.value == pytest.approx(stats.kendalltau(ours, range(5)).statistic)
    assert "bleu" not in ranks, "the paper has no BLEU"


def test_where_no_arm_varies_over_its_seeds_the_report_says_that_nobody_knows_how_many_it_takes(
    runs_dir: Path, make_run: Make
) -> None:
    for arm, right in (("base", 0.9), ("A1", 0.8)):
        for seed in (1, 2):
            make_run(arm, seed, translations=translated(right, 7), references=REFERENCES)
    told = footnotes(compared(runs_dir))
    assert "How many seeds would show a difference of BLEU is not known: the runs of each arm score alike" in told
    make_run("A1", 3, translations=translated(0.7, 8), references=REFERENCES)
    assert "the runs of base score alike" in footnotes(compared(runs_dir)), "half of the arms do not vary"
    make_run("base", 3, translations=translated(0.8, 9), references=REFERENCES)
    told = footnotes(compared(runs_dir))
    assert "is not known" not in told
    assert "Seeds an arm that would likely show" in told


@pytest.mark.parametrize(("right", "is_told"), [(0.05, False), (0.8, True)])
def test_near_the_floor_of_a_metric_nothing_is_said_of_how_many_seeds(
    right: float, is_told: bool, runs_dir: Path, make_run: Make
) -> None:
    for arm in ("base", "A1"):
        for seed in (1, 2):
            make_run(arm, seed, translations=translated(right, seed), references=REFERENCES)
    assert ("Seeds an arm that would likely show" in footnotes(compared(runs_dir))) == is_told


def test_the_interval_of_an_arm_with_one_seed_stands_below_the_table(runs_dir: Path, make_run: Make) -> None:
    for seed in (1, 2, 3):
        make_run("base", seed, ppl=3.0 + 0.1 * seed)
    make_run("A1", ppl=4.0)
    made = compared(runs_dir)
    found = arms(made)["A1"].against
    assert found is not None
    interval = found.differences["ppl"].test.interval
    assert interval is not None
    low, high = (f"{end:.3f}" for end in interval)
    assert f"is taken to vary as the others do: A1 [{low}, {high}]." in footnotes(made)
    make_run("A1", 2, ppl=4.1)
    assert "is taken to vary" not in footnotes(compared(runs_dir))
