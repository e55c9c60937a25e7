"""The usage of `etude`, and the list of its verbs."""

import re

HELP = """étude: study the Transformer one change at a time.

usage: etude VERB [arguments]

  train       train and evaluate one model           etude train model.heads=2 scale=pocket
  sweep       the runs of a study or a sweep file    etude sweep sweeps/table3.yaml scale=pocket
  status      where the runs of a study stand        etude status table3
  plan        what runs will take and cost           etude plan table3 scale=full device=a100
  show        the model of a config as a tree        etude show model/position=rope
  diff        compares two configs, or two runs      etude diff table3/base table3/A1
  report      compares arms, or trials of a search   etude report table3
  results     its runs for notebooks, one a row      etude results table3 --csv runs.csv
  clean       what may go of finished runs           etude clean table3
  evaluate    perplexity and BLEU of a trained run   etude evaluate run=runs/... decoding.beam=8
  analyze     heads, order, lengths, decoding        etude analyze run=runs/...
  translate   lines from stdin to stdout             etude translate run=runs/... < in.en > out.de
  generate    text from a language model             etude generate run=runs/... prompt="Der alte"
  export      a trained run for another program      etude export runs/... --ctranslate2 DIR
  prepare     download and tokenise a corpus         etude prepare data=multi30k_en_de
  init        a folder of your own to begin with     etude init mine
  doctor      what this machine has, what is missing etude doctor

`etude VERB --help` says what each takes. Behind train, evaluate, analyze, translate, generate and
prepare stand Hydra overrides and Hydra's own flags: --cfg job, --info, -m for a multirun;
`eval "$(etude -sc install=bash)"` completes with the tab key; zsh needs bashcompinit before it, and fish
has `etude -sc install=fish | source`. conf/, experiments/, sweeps/ and modules of the working directory
come before the shipped ones, and a folder named with -cd before its conf/.
"""

VERBS = re.findall(r"^  (\w+)  ", HELP, flags=re.MULTILINE)
