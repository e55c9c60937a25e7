"""The options of a verb are those that its help lists."""

import pytest

from etude.cli import arguments, clean, diff, plan, report, results, show, status, sweep
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.errors import UserError


def test_the_value_behind_an_option_goes_with_it() -> None:
    asked = arguments.parse("plan", plan.HELP, ["table3", "--tolerance", "0.2", "scale=full", "--json", "device=a100"])
    assert asked.words == ["table3", "scale=full"]
    assert asked.options == {"--tolerance": "0.2", "--json": "", "device": "a100"}
    assert arguments.parse("plan", plan.HELP, ["--tolerance=0.2"]).options == {"--tolerance": "0.2"}


def test_an_option_is_no_value_of_the_one_before() -> None:
    with pytest.raises(UserError, match=r"--html needs FILE"):
        arguments.parse("report", report.HELP, ["table3", "--html", "--latex", "t.tex"])
    assert arguments.parse("results", results.HELP, ["table3", "--csv", "-"]).options == {"--csv": "-"}


@pytest.mark.parametrize(
    ("verb", "flags"), [(plan, {"--measure", "--json"}), (show, {"--json"}), (sweep, {"--path"}), (diff, set())]
)
def test_every_option_in_the_usage_line_is_taken_and_no_other(verb, flags) -> None:
    name = verb.__name__.rpartition(".")[2]
    for flag in ("--measure", "--json", "--path", "--yes"):
        if flag in flags:
            assert f"[{flag}]" in verb.HELP.partition("\n\n")[0]
            assert arguments.parse(name, verb.HELP, [flag]).options == {flag: ""}
        else:
            with pytest.raises(UserError, match=rf"etude {name} takes no {flag}; "):
                arguments.parse(name, verb.HELP, [flag])


def test_a_flag_takes_no_value_and_overrides_are_left_as_they_are() -> None:
    with pytest.raises(UserError, match=r"takes no --json=1; did you mean --json\?"):
        arguments.parse("show", show.HELP, ["--json=1"])
    words = ["+model.x=-1", "~model/norm", "device.x=1", "", "model.heads=1,2"]
    assert arguments.parse("plan", plan.HELP, words) == arguments.Arguments(words, {})


def test_an_option_of_another_verb_is_told_with_that_verb() -> None:
    with pytest.raises(UserError, match=r"etude results takes no --latex; it is for etude report$"):
        arguments.parse("results", results.HELP, ["table3", "--latex", "x.tex"])
    with pytest.raises(UserError, match=r"etude report takes no --csv=x; it is for etude results$"):
        arguments.parse("report", report.HELP, ["table3", "--csv=x"])


@pytest.mark.parametrize(
    "value",
    ["plain", '"a,b"', "'a,b'", '"a b"', r"'it\'s'", r'"a\\b"', r"'a\\'", '"5"', "'null'", "'[a]'", "x/y", "~/é"],
)
def test_quotes_mean_what_they_mean_to_hydra(value: str) -> None:
    read = arguments.parse("status", status.HELP, [f"runs_dir={value}"]).options["runs_dir"]
    assert read == compose([f"runs_dir={value}"]).runs_dir
    assert arguments.Arguments(["table3", f"data.source={value}"], {}).where == {"data.source": read}


def test_what_is_several_values_to_hydra_or_nothing_is_left_as_it_was_typed() -> None:
    words = ["table3", "seed='1','2'", 'a="b', "c='d'e"]
    assert list(arguments.Arguments(words, {}).where.values()) == ["'1','2'", '"b', "'d'e"]


def test_a_folder_that_train_finds_is_found_by_every_verb(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    config = compose(["budget=smoke", "data=files", "data.tsv=pairs.tsv", "data.holdout=2", 'runs_dir="a,b"'])
    (tmp_path / "pairs.tsv").write_text("".join(f"line {k}\tzeile {k}\n" for k in range(9)))
    run = freeze(config)
    assert run.path.parts[0] == "a,b"
    status.main(['runs_dir="a,b"'])
    assert run.path.name in capsys.readouterr().out
    with pytest.raises(UserError, match="a,b holds no finished run of single"):
        report.main(["single", 'runs_dir="a,b"'])
    clean.main(['runs_dir="a,b"'])
    assert "a,b: nothing to clean" in capsys.readouterr().out
    show.main([f'run="{run.path}"'])
    assert "parameters" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_the_help_is_printed_wherever_it_is_asked_for(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments.parse("show", show.HELP, ["table3/A1", word, "--nonsense"])
    assert (ended.value.code, capsys.readouterr().out) == (0, show.HELP)


def test_an_option_without_its_value_is_told_by_its_own_line_of_the_help() -> None:
    with pytest.raises(
        UserError, match=r"--latex needs FILE: write it for .input in a paper; the preamble needs booktabs and graphicx"
    ):
        arguments.parse("report", report.HELP, ["table3", "--latex"])
    asked = arguments.parse("report", report.HELP, ["table3", "--serve", "scale=small", "--latex=x", "runs_dir=here"])
    assert asked.options == {"--serve": "", "--latex": "x", "runs_dir": "here"}
    assert (asked.study, asked.where, str(asked.runs_dir)) == ("table3", {"scale": "small"}, "here")
    assert arguments.parse("report", report.HELP, ["--serve=8000"]).options == {"--serve": "8000"}


def test_a_key_that_a_verb_without_overrides_does_not_have_is_refused() -> None:
    with pytest.raises(UserError, match=r"etude status takes no run_dir=x; did you mean runs_dir="):
        arguments.parse("status", status.HELP, ["run_dir=x"])


def test_an_empty_word_is_no_pair_either() -> None:
    with pytest.raises(UserError, match=r"'' is not key=value"):
        _ = arguments.Arguments(["table3", "", "scale=full"], {}).where
