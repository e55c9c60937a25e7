"""A process that logs rows as training does and waits to be killed: `logging_rows.py RUN_DIR MODE FIRST LAST`."""

import json
import sys
import time
from pathlib import Path

from etude.store.run_dir import RunDir
from etude.training.loggers import wandb
from etude.training.metrics_writers import LoggerSink, MetricsFile

run = RunDir(Path(sys.argv[1]))
first, last = map(int, sys.argv[3:])
(logger,) = wandb(run, run.config(), mode=sys.argv[2], project="etude", entity=None)
sinks = [MetricsFile(run.metrics_file, first - 1), LoggerSink(logger)]
for step in range(first, last + 1):
    for sink in sinks:
        row = {"step": step, "tokens": 100 * step, "seconds": step / 10}
        sink.write(row | {"loss": 1 / step})
        if step % 5 == 0:
            sink.write(row | {"valid_loss": 2 / step, "valid_perplexity": 9 / step})
print(json.dumps({"logged": last}), flush=True)
time.sleep(600)
