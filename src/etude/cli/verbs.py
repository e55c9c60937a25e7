"""The usage of `etude`, and the list of its verbs."""

import re

HELP = """étude: study the Transformer one change at a time.

usage: etude VERB [arguments]

  train      train and evaluate one model    etude train model.heads=2
  sweep      runs of a study or sweep file   etude sweep sweeps/table3.yaml
  status     the state of a study's runs     etude status table3
  plan       estimates what runs will cost   etude plan table3 device=a100
  show       the model of a config, a tree   etude show model/position=rope
  diff       compares two configs or runs    etude diff table3/base table3/A1
  report     compares arms, or trials        etude report table3
  results    one row per run, as CSV         etude results table3 --csv runs.csv
  clean      deletes what is not needed      etude clean table3
  evaluate   scores of a trained run         etude evaluate run=runs/...
  analyze    heads, order, lengths, search   etude analyze run=runs/...
  translate  stdin to stdout                 etude translate run=runs/...
  generate   text from a language model      etude generate run=runs/...
  export     a trained run's safetensors     etude export runs/... DIR
  prepare    downloads, tokenises a corpus   etude prepare data=multi30k_en_de
  init       a folder to begin with          etude init mine
  doctor     what this machine has           etude doctor

`etude VERB --help` explains a verb. train, evaluate, analyze, translate,
generate and prepare take Hydra overrides, and Hydra's flags: --cfg job, --info,
-m for a multirun. Tab completion: eval "$(etude -sc install=bash)"; in zsh,
first load bashcompinit; in fish, etude -sc install=fish | source.
conf/, experiments/ and sweeps/ in the working directory come before those of
étude, and a folder given with -cd before its conf/.
"""

VERBS = re.findall(r"^  (\w+)  ", HELP, flags=re.MULTILINE)
