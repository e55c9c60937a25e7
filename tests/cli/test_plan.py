"""`etude plan` as it is typed."""

import json
import re
import subprocess
import sys

import pytest

from etude.cli.plan import main as plan
from etude.config.compose import compose
from etude.config.freeze import fingerprints, run_dir
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.inspect.plan.runs import PROPORTIONS
from etude.inspect.plan.table import format_hours
from etude.study.study import load_study

TABLE3 = ",".join(f"table3/{arm}" for arm in load_study("table3").arms)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """No run and no text is there, and none may be made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ETUDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COLUMNS", raising=False)
    yield
    assert not (tmp_path / "cache").exists()


@pytest.fixture
def own(tmp_path):
    """Writes the file of the study `own`, where one stands."""

    def write(text: str) -> None:
        file = tmp_path / "experiments/own/study.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(text)

    return write


@pytest.fixture
def printed(capsys):
    def make(*words: str) -> str:
        plan(words)
        return capsys.readouterr().out

    return make


@pytest.fixture
def told(printed):
    def make(*words: str) -> dict:
        return json.loads(printed(*words, "--json"))

    return make


def test_what_a_processor_computes_in_float32_is_planned_so(told, printed, has_bf16):
    mixed, full = (told(f"precision={precision}") for precision in ("bf16-mixed", "32-true"))
    assert (mixed["device"] == full["device"]) is not has_bf16
    assert (mixed["runs"][0]["peak_memory_bytes"] == full["runs"][0]["peak_memory_bytes"]) is not has_bf16
    why = "32-true (bf16-mixed: this processor has no units for bfloat16)."
    assert (why in " ".join(printed("precision=bf16-mixed").split())) is not has_bf16


def test_what_does_not_fit_is_told_with_the_way_out(printed):
    small = printed(
        "table3", "scale=full", "device=rtx4090", "budget.source_tokens=30000", "budget.target_tokens=30000"
    )
    assert re.search(r"More than the 24 GB of rtx4090: .*big.*trainer\.micro_batches=2", " ".join(small.split()))
    assert "More than the" not in printed("table3", "device=rtx4090")


def test_table_3_is_planned_with_the_papers_column_beside_ours(printed):
    out = printed(f"experiment={TABLE3}", "scale=full", "model/conventions=t2t_2017")
    assert "too narrow" not in out
    lines = out.splitlines()
    rows = {line.split()[0]: line.split()[1:3] for line in lines if re.match(r" ?(base|[A-E]\d|big) ", line)}
    assert list(rows) == list(load_study("table3").arms)
    ours, papers = map(float, rows["base"])
    assert papers == 65 == round(ours)
    assert max(map(len, lines)) <= 120


def test_a_run_that_is_typed_or_drawn_twice_counts_once(told):
    assert [run["seed"] for run in told("seed=1,1,2")["runs"]] == [1, 2]


def test_runs_that_are_finished_are_left_out_of_the_totals(told, printed):
    config = resolve(compose(["experiment=table3/A1", "seed=2"]))
    run_dir(config, fingerprints(config).all).write_result({})
    found = told("experiment=table3/A1", "seed=1,2", "device=a100")
    states = {run["seed"]: run["state"] for run in found["runs"]}
    assert states == {1: "to do", 2: "finished"}
    assert found["to_do"]["runs"] == 1
    assert found["to_do"]["hours"] == found["runs"][0]["hours"]
    assert found["to_do"]["us_dollars"] == pytest.approx(2.5 * found["to_do"]["hours"])
    assert "\n 1 to do " in printed("experiment=table3/A1", "seed=1,2")
    run_dir(config, fingerprints(config).all).write_result({"results_version": 0})
    assert told("experiment=table3/A1", "seed=2")["runs"][0]["state"] == "finished"
    assert told("experiment=table3/A1", "seed=2", "stale=rerun")["runs"][0]["state"] == "to do"


@pytest.mark.parametrize(
    ("words", "differs"),
    [
        (["experiment=table3/base"], {}),
        (["experiment=table3/E1"], {"model/position": "learned"}),
        (["experiment=table3/big", "scale=full"], {"model": "big", "budget.max_steps": 300000}),
        (["model=big", "model.heads=2"], {"model": "big", "model.heads": 2}),
        (["model=big", "model.dropout=0.1"], {"model": "big", "model.dropout": 0.1}),  # the baseline's, and not big's
        (["experiment=table3/A1", "seed=3", "model.d_ff=100"], {"model.heads": 1}),
        (["data=multi30k_en_de"], {"data": "multi30k_en_de"}),
        (["scale=full"], {"scale": "full", "budget": "full"}),
        (["experiment=gpt/qk_norm"], {"model/attention": "modular"}),  # and not every axis that such attention has
    ],
    ids=str,
)
def test_what_differs_is_what_was_chosen_and_said_and_not_what_follows(told, words, differs):
    (run,) = told(*words)["runs"]
    assert run["differs"] == differs


def test_runs_of_one_arm_differ_by_what_is_listed(told):
    runs = told("experiment=table3/A1", "optimizer=adam,adamw", "budget.max_steps=5,7")["runs"]
    listed = [{key: run["differs"][key] for key in ("optimizer", "budget.max_steps")} for run in runs]
    assert listed == [{"optimizer": o, "budget.max_steps": s} for o in ("adam", "adamw") for s in (5, 7)]


def test_arms_with_another_budget_are_named_once_with_what_would_even_it_out(printed):
    of_c2 = r"C2: 0\.\d+ × the parameters \(model\.d_ff=\d+\), 0\.\d+ × the training FLOPs \(budget\.max_steps=\d+\)"
    assert len(re.findall(of_c2, printed("experiment=table3/C2", "seed=1,2"))) == 1
    assert "Not the budget" not in printed("experiment=table3/A1,table3/C6", "--tolerance=0.9")
    assert "Not the budget" not in printed("model.d_ff=512")  # no study, so no arms to be fair to


def test_of_several_sizes_of_an_arm_the_range_is_told_and_no_way_out_that_is_of_one_size(printed):
    out = printed("experiment=table3/C1", "scale.width=0.125,0.25")
    found = re.search(
        r"C1: (0\.\d+) to (0\.\d+) × the parameters, (0\.\d+) to (0\.\d+) × the training FLOPs$", out, re.M
    )
    assert found
    assert float(found[1]) < float(found[2])
    assert float(found[3]) < float(found[4])


def test_brackets_are_no_markup(printed):
    out = printed("data=files", "data.source='[/red]'", "data.target=b")
    assert "data.source=[/red]" in out.replace("\n", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--mesure"], "--measure"),
        (["--tolerance", "lots"], "such as --tolerance 0.1, not 'lots'"),
        (
            ["--tolerance"],
            "--tolerance needs SHARE: by how much an arm's budget may differ from the baseline's before the plan",
        ),
        (["--tolerance=-1"], "such as --tolerance 0.1"),
        (["device=gpu9"], "conf/devices.yaml"),
        (["experiment=table3/A1,table3/B1", "model.d_k=0"], "experiment=table3/A1: model.d_k must be"),
        (["model.heads=3"], "^model.heads=3 does not divide"),
        (["model.headz=3"], "did you mean heads"),
        (["experiment=table3/A9"], "A9"),
    ],
    ids=str,
)
def test_a_mistake_is_one_sentence(words, sentence):
    with pytest.raises(UserError, match=sentence) as mistake:
        plan(words)
    assert "\n" not in str(mistake.value)


def test_an_override_that_would_undo_what_the_arm_is_about_is_not_offered(printed):
    assert "C6: 0.79 × the parameters, " in printed("experiment=table3/C6")
    assert "budget.max_steps" not in printed("experiment=table3/big").rpartition("even it out")[2]


def test_the_papers_column_is_explained_unless_it_can_be_held_against_ours(printed):
    sentence = "counted as model/conventions=t2t_2017 scale=full counts"
    assert sentence in printed("experiment=table3/B1")
    assert sentence not in printed("experiment=table3/B1", "scale=full", "model/conventions=t2t_2017")


@pytest.mark.parametrize("device", ["cpu", "h100"])  # the most hours and the fewest
def test_a_narrow_terminal_is_not_overrun_and_told_what_it_goes_without(device, printed, monkeypatch):
    words = ("table3", "scale=full", f"device={device}")
    monkeypatch.setenv("COLUMNS", "80")
    narrow = printed(*words)
    assert max(map(len, narrow.splitlines())) <= 80
    assert "because this terminal is too narrow: tokens, FLOP to decode, FLOP a step, FLOP to train" in " ".join(
        narrow.split()
    )
    assert re.search(r"^ big +178\.\d+ +213 +\d+\.\d +\d+:\d\d +[\d,–]+ +to do +model=", narrow, re.MULTILINE)


def test_no_figure_is_cut_off_in_a_narrow_terminal(printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert "…" not in printed("experiment=table3/A1,table3/B1", "scale=full")


def in_a_fresh_process(*words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, "-m", "etude", "plan", *words, "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_fresh_process_which_composes_beside_importing_torch_says_the_same(told):
    """It does without Lightning, which takes longer to import."""
    words = ["experiment=table3/A1,table3/E1"]
    done = in_a_fresh_process(*words, options=("-X", "importtime"))
    assert done.returncode == 0
    assert json.loads(done.stdout) == told(*words)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "torch" in imported
    assert "lightning" not in imported


@pytest.mark.slow
def test_a_fresh_process_which_composes_beside_importing_torch_tells_a_mistake_in_one_sentence():
    done = in_a_fresh_process("model.headz=3")
    assert done.returncode == 2
    assert done.stderr.startswith("etude: model.headz is not a key of model")
    assert done.stderr.count("\n") == 1


def test_what_this_machine_has_says_nothing_of_another(printed):
    with pytest.raises(UserError, match="name the precision on h100"):
        printed("table3", "precision=auto", "device=h100")


def test_this_machine_is_not_measured_for_another_device(printed):
    with pytest.raises(UserError, match="--measure times this machine: leave it out, or device=h100"):
        printed("table3", "device=h100", "--measure")


def test_an_arm_that_cannot_be_built_is_named(tmp_path, own, printed, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "unbuilt.py").write_text("import nobody_has_this\nclass Scale:\n    def __init__(self, *, d_k): ...\n")
    own("baseline: a\narms: {a: [], b: [model.scale._target_=unbuilt.Scale]}\n")
    with pytest.raises(UserError, match=r"own/b: .*unbuilt\.py, line 1: No module named 'nobody_has_this'"):
        printed("own")


def test_an_arm_that_changes_nothing_is_named(own, printed, told):
    own(
        "baseline: a\n"
        "arms: {a: [], b: [model/norm=layer], c: [model/norm=rms], d: [trainer.micro_batches=2], e: [model/norm=rms]}\n"
    )
    sentence = "Arms that are the same run as the baseline: b, d."
    assert sentence in printed("own", "seed=1,2").splitlines()
    assert "Arms that are the same run as c: e." in printed("own").splitlines()
    assert (told("own")["unchanged"], told("own")["same"]) == (["b", "d"], {"c": ["e"]})
    assert "the same run as" not in printed("experiment=own/c")


def test_a_choice_of_what_the_model_does_not_have_is_named(own, told):
    own(
        "baseline: a\n"
        "arms:\n"
        "  a: [model/encoder=recurrent, model/decoder=recurrent]\n"
        "  b: [model/encoder=recurrent, model/decoder=recurrent, model/norm=rms]\n"
        "  c: [model/encoder=recurrent, model/decoder=recurrent, model/decoder/alignment=dot]\n"
        "  d: [model/encoder=convolution, model/norm=rms, model/position=t5]\n"
    )
    assert told("own", "model.n_layers=1", "model.d_model=32")["idle"] == {"b": ["model/norm=rms"]}


@pytest.mark.parametrize("words", [["seed=1,2,3"], ["seed=1,2", "tuned=true"]])
def test_the_numbers_of_a_baseline_are_shown_once_whatever_the_seeds_and_trials(words, own, printed):
    own("baseline: a\narms: {a: [], b: [model/norm=rms]}\ntune: {budget.lr_factor: [1, 2]}\npilots: [101]\n")
    head = printed("own", *words).partition("Dimensionless numbers")[2].strip().splitlines()[0]
    assert head.split() == ["own/a"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            "search: {manner: promote, rungs: [0.1, 1], eta: 4}",
            r"At most \d+:\d\d hours, if every trial .* train 55% of",
        ),
        ("early_terminate: {type: hyperband, min_iter: 1}", r"At most \d+:\d\d hours: trials that are stopped early"),
        ("metric: {name: valid.loss}", ""),
    ],
)
def test_a_search_costs_at_most_all_of_its_trials_and_with_promotion_about_a_share(how, said, tmp_path, printed, told):
    drawn = "budget.lr_factor: {min: 0.5, max: 2.0}, budget: {value: smoke}"
    (tmp_path / "mine.yaml").write_text(f"method: random\nrun_cap: 2\n{how}\nparameters: {{{drawn}}}\n")
    found = printed("mine.yaml")
    assert re.search(said, " ".join(found.split())) if said else "At most" not in found
    to_do = told("mine.yaml")["to_do"]
    assert ("hours_with_promotion" in to_do) == ("promote" in how)
    assert to_do.get("hours_with_promotion", 0) < to_do["hours"]


def test_trials_that_begin_for_so_many_hours_cost_no_more_than_these_and_the_last(own, printed, told):
    own(
        "baseline: a\narms: {a: [], b: [model/norm=rms]}\npilots: [101]\n"
        "tune: {budget.lr_factor: {min: 0.5, max: 2.0}, trials: 4, hours: 2.5}\n"
    )
    words = ["own", "tuned=true", "scale=full", "budget=full"]
    planned = told(*words)
    runs = planned["runs"]
    [hours] = {run["hours"] for run in runs}
    others = [run for run in runs if run["seed"] != 101]
    most = 2 * (2.5 + hours) + len(others) * hours
    assert planned["to_do"]["hours_at_most"] == pytest.approx(most)
    found = " ".join(printed(*words).split())
    assert f"At most {format_hours(most)} hours" in found
    assert len(runs) == 2 * 4 + len(others)
    assert "no trial of an arm begins after 2:30 hours" in found


def _without_units(out: str) -> dict[str, str]:
    lines = [re.split(r"  +", line.strip()) for line in out.partition("Dimensionless numbers")[2].splitlines()]
    return {line[0]: line[1] for line in lines if len(line) == 2}


def test_the_numbers_without_units_of_a_sweep_file_are_of_its_runs_with_their_range(tmp_path, printed, told):
    (tmp_path / "mine.yaml").write_text(
        "method: grid\nparameters: {budget: {value: smoke}, model.heads: {value: 1}, model.d_k: {values: [16, 64, 32]}}"
    )
    keys = ("tokens_per_parameter", "warmup_share", "d_k_over_length")
    of_runs = [[run["without_units"][key] for run in told("mine.yaml")["runs"]] for key in keys]
    found = _without_units(printed("mine.yaml"))
    shown = [found[name] for name in (PROPORTIONS[key] for key in keys)]
    ends = [dict.fromkeys(f"{end:.3g}" for end in (min(numbers), max(numbers))) for numbers in of_runs]
    assert shown == [" to ".join(both) for both in ends]
    assert [len(both) for both in ends] == [2, 1, 2]


def test_the_numbers_without_units_of_arms_are_of_the_baseline_only_where_it_is_among_them(printed):
    for words, name in (("table3/A1,table3/base", "table3/base"), ("table3/A1,table3/B1", "2 runs")):
        numbers = printed(f"experiment={words}").partition("Dimensionless numbers")[2]
        assert re.split(r"  +", numbers.strip().splitlines()[0].strip()) == [name, "paper"]
