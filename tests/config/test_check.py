"""What a person may get wrong in a config, each told as one sentence with the way out."""

import subprocess
import sys

import pytest

from etude.config.check import check
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.config.resolve import resolve
from etude.config.schema import Run
from etude.errors import UserError


def of_step(step: int) -> float:
    """A schedule as a function, which nothing makes."""
    return 1 / step


MISTAKES = {
    "a schedule that is a function": (
        ["~schedule", f"+schedule._target_={__name__}.of_step"],
        r"schedule.step is missing.*of_step needs it.* for a function of the step, write a class with __call__\(step\)",
    ),
    "a misspelt key": (["model.haeds=4"], r"model.haeds is not a key of model; did you mean heads"),
    "a misspelt section": (["modle.heads=4"], r"modle is not a key of the config; did you mean model"),
    "a misspelt group": (
        ["model/positon=learned"],
        r"model/positon is not a config group; did you mean model/position",
    ),
    "a misspelt value": (["model/position=lerned"], r"no 'lerned' in the group model/position; did you mean learned"),
    "a misspelt top-level value": (["data=gramar"], r"no 'gramar' in the group data; did you mean grammar"),
    "a misspelt arm": (["experiment=table3/A9"], r"no 'table3/A9' in the group experiment; did you mean .*table3/A"),
    "an added key": (["+model.colour=3"], r"model.colour is not a key of model"),
    "a key added to a part": (["+model.position.colour=3"], r"model.position.colour is not a key of model.position"),
    "a key that a class has a default for": (
        ["optimizer=adamw", "optimizer.amsgrad=true"],
        r"optimizer.amsgrad is not in the config yet: write \+optimizer.amsgrad=",
    ),
    "a key of a class that was put in": (
        ["optimizer._target_=torch.optim.AdamW", "optimizer.lr=1"],
        r"optimizer.lr is not in the config yet: write \+optimizer.lr=",
    ),
    "a misspelt key of a class": (["optimizer=adamw", "optimizer.amsgard=true"], r"did you mean amsgrad\?"),
    "a word for a whole number": (["model.n_layers=six"], r"model.n_layers must be a whole number, not 'six'"),
    "a fraction for a whole number": (["budget.max_steps=2.5"], r"budget.max_steps must be a whole number, not 2.5"),
    "several seeds, written otherwise": (["seed=1..3"], r"seed must be a whole .*'1..3'; for several say seed=1,2,3"),
    "a number for a section": (["averaging=5"], r"averaging must be a section of keys, not 5; write averaging.KEY=..."),
    "steps for a share of them": (["budget.steps=300"], r"would make 30,000,000: .* say budget.max_steps=300"),
    "what follows at W&B": (["logger.wandb.group=mine"], r"wandb.group is not a key .*; here it is study, which"),
    "what the code gives": (["logger.wandb.ruin=mine"], r"wandb.ruin is not a key of logger.wandb; (?!.*\brun\b)"),
    "a word for a number": (["model.dropout=much"], r"model.dropout must be a number, not 'much'"),
    "truth for a number": (["loss.smoothing=true"], r"loss.smoothing must be a number, not True"),
    "a number for a word": (["study=3"], r"study must be a word, not 3"),
    "a number for truth": (["model.attention.bias=2"], r"model.attention.bias must be true or false, not 2"),
    "a list for a number": (["seed=[1,2]"], r"seed must be a whole number, not \[1, 2\]"),
    "a word of two letters for two languages": (
        ["data=files", "data.languages=de"],
        r"data.languages must be a list, not 'de'",
    ),
    "a word for columns": (
        ["data=huggingface", "data.columns=text"],
        r"data.columns must be a dict or null, not 'text'",
    ),
    "a number for checksums": (["data=multi30k_en_de", "data.sums=3"], r"data.sums must be a dict, not 3"),
    "an unknown choice": (["precision=bf16"], r"precision must be one of auto, 32-true, bf16-mixed"),
    "an unknown way to split lines": (["+metrics.bleu.tokenize=cn"], r"metrics.bleu.tokenize must be one of 13a, intl"),
    "a dot for a slash": (["model.position=learned"], r"to choose a variation write model/position=learned"),
    "nothing for a part": (["model.norm=null"], r"model.norm must be one of .*, not None; .* write model/norm=NAME"),
    "a section for a value": (
        ["budget=7"],
        r"a config group takes the name of one of its files, such as .*, and no number",
    ),
    "no heads to share a width": (["experiment=table3/B1", "scale.head_count=0"], "scale.head_count must be above 0"),
    "heads that do not divide": (
        ["model.heads=7"],
        r"model.heads=7 does not divide model.d_model=64.*model.d_k=9 model.d_v=9",
    ),
    "heads that a scale gives": (
        ["scale.head_count=3"],
        r"model.heads=24 .* \(by .*scale.head_count=3\), and model.d_k",
    ),
    "heads of their own at full size": (
        ["scale=full", "model.heads=7"],
        r"does not divide model.d_model=512, and model",
    ),
    "null for a size": (["model.d_ff=null"], r"model.d_ff must be a whole number, not None"),
    "a missing key": (
        ["~model.d_ff"],
        r"d_ff cannot be worked out: it is that of model.d_ff, and there is no such key",
    ),
    "a missing key of a part": (["~model.norm.eps"], r"model.norm.eps is missing.*no default to hide it"),
    "a part that the code makes": (
        ["~model.norm._partial_"],
        r"model.norm is made by the code, .*: write _partial_: true beside its _target_",
    ),
    "a class that is not there": (
        ["model.norm._target_=etude.model.norm.LayerNrom"],
        r"etude.model.norm.LayerNrom names nothing in etude.model.norm; did you mean LayerNorm",
    ),
    "a module that is not there": (["model.norm._target_=nowhere.Norm"], r"nowhere.Norm cannot be found"),
    "no override at all": (["model.heads"], r"model.heads"),
    "a broken override": (["model.heads=[1"], r"is not an override: write key=value"),
    "the end of a key": (
        ["max_steps=9"],
        r"max_steps is not a key of the config; did you mean budget.max_steps or schedule.max_steps\?",
    ),
    "the end of a key of the logger, and of one of Hydra's": (["mode=x"], r"did you mean logger\.wandb\.mode\?"),
    "the end of a launcher's key": (["retries=2"], r"did you mean hydra\.launcher\.retries\?"),
    "the name that others have for it, of a launcher": (
        ["hydra/launcher=submitit_slurm", "hydra.launcher.gpus=2"],
        r"hydra\.launcher\.gpus .*gpus_per_node",
    ),
    "the name that others have for it": (["lr=0.1"], r"lr is not a key of the config; here it is budget.lr_factor, by"),
    "the device, as of other verbs": (["device=cpu"], r"device is not a key .*; here it is trainer, as in trainer=cpu"),
    "some arms": (["arms=base"], r"arms is not a key of the config; here it is experiment=STUDY/ARM,STUDY/ARM"),
    "the same in a section": (["optimizer.lr=0.1"], r"optimizer.lr is not a key .*; here it is budget.lr_factor"),
    "a size that is two here": (["batch_size=64"], r"here it is budget.source_tokens and budget.target_tokens"),
    "the end of two keys": (["heads=4"], r"heads is not a key of the config; did you mean model.heads\?"),
    "the end of a group": (["position=rope"], r"did you mean model/position\?"),
    "several values": (["seed=1,2"], r"seed=1,2 is several values.*`etude train -m seed=1,2` makes a run of each"),
    "a text with a comma": (["logger.wandb.notes=no, yes"], r"'logger.wandb.notes=\"no, yes\"' is one, a text"),
    "a choice made twice": (["+experiment=table3/A1"], r"write experiment=NAME, once and without a \+"),
    "an arm without its key": (["table3/A1"], r"'table3/A1' is not an override; did you mean experiment=table3/A1\?"),
    "a study for an arm": (["experiment=table3"], r"table3 is a study: .*experiment=table3/base.*etude sweep table3"),
    "an arm without its study": (["experiment=A1"], r"did you mean experiment=table3/A1\?"),
    "truth for a group": (["logger=false"], r"the name of one of its files, such as logger=none"),
    "null for a logger": (
        ["logger.wandb=null"],
        r"logger\.wandb must be a part, .*; to leave it out write ~logger\.wandb",
    ),
    "an interpolation to nowhere": (
        ["model.d_ff=${model.width}"],
        r"d_ff cannot be worked out: it is that of model.width, and there is no such key; say model.*d_ff=",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_sentence_with_the_way_out(mistake):
    overrides, sentence = MISTAKES[mistake]
    with pytest.raises(UserError, match=sentence) as caught:
        check(resolve(compose(overrides)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["scale=full"],
        ["model=big", "scale=small"],
        ["model.d_k=3", "model.heads=7", "model.d_v=2"],
        ["experiment=table3/E1", "precision=bf16-mixed"],
        ["logger=none", "data=files", "data.tsv=a.tsv"],
        ["data=multi30k_en_fr", "decoding=greedy", "trainer=gpu"],
    ],
)
def test_sound_configs_pass(overrides):
    check(resolve(compose(overrides)))


def test_a_whole_number_may_stand_for_a_number():
    check(resolve(compose(["model.dropout=0"])))


def test_what_is_typed_is_taken_as_it_is_at_any_scale():
    assert compose(["scale=pocket", "model.d_model=512"]).model.d_model == 512


def test_checking_needs_no_lightning_which_takes_seconds_to_import():
    program = (
        "import sys; from etude.config.compose import compose; from etude.config.check import check; "
        "from etude.config.resolve import resolve; check(resolve(compose(['experiment=table3/B1']))); "
        "sys.exit('lightning' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_refused_config_leaves_nothing_behind(tmp_path):
    with pytest.raises(UserError):
        freeze(compose([f"runs_dir={tmp_path}/runs", "model.heads=7"]))
    assert list(tmp_path.iterdir()) == []


def test_every_section_of_the_composed_config_is_in_the_schema():
    names = set(compose()) - {"hydra"}
    assert names == set(Run.__dataclass_fields__)


@pytest.mark.parametrize(
    ("folder", "override", "sentence"),
    [
        ("metric", "metrics=mine", "there is no 'mine' in the group metrics, but there is in metric; "),
        ("feedforward", "model/feedforward=mine", "group model/feedforward, but there is in feedforward; "),
        ("feedforward", "feedforward=mine", r"feedforward is not a config group; did you mean model/feedforward\?"),
        ("model/norm", "model/position=mine", "group model/position, but there is in model/norm; "),
    ],
)
def test_a_file_in_the_wrong_folder_is_pointed_at(folder, override, sentence, tmp_path, monkeypatch):
    (tmp_path / "conf" / folder).mkdir(parents=True)
    (tmp_path / "conf" / folder / "mine.yaml").write_text("_target_: mine.Mine\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=sentence):
        check(resolve(compose([override])))


def test_a_file_that_ends_in_yml_is_pointed_at_where_it_is_missed(tmp_path, monkeypatch):
    (tmp_path / "conf/model/norm").mkdir(parents=True)
    (tmp_path / "conf/model/norm/mine.yml").write_text("_target_: mine.Mine\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"conf/model/norm/mine\.yml is not read: end its name in \.yaml\)$"):
        compose(["model/norm=mine"])


def test_who_stands_where_there_is_no_folder_of_configs_is_told_where_that_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=rf"group model/norm; .* \({tmp_path}, where you stand, has no .*conf\)$"):
        compose(["model/norm=mine"])
    (tmp_path / "conf").mkdir()
    with pytest.raises(UserError, match=r"no 'mine' in the group model/norm; [^()]*$"):
        compose(["model/norm=mine"])
