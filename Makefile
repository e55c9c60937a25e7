# Two commands do everything, set-up included:  make table3   make test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: table3 test bench docs gallery check format lock clean

table3: $(VENV)/.installed ## all twenty rows of the paper's Table 3, at pocket scale, and the table
	$(BIN)/etude sweep sweeps/table3.yaml scale=pocket
	$(BIN)/etude report table3
	$(BIN)/etude report table3 --html table3.html

test: $(VENV)/.installed-dev ## every test
	$(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/.installed-bench ## how fast it is beside its peers, on this machine; some minutes
	$(BIN)/python benchmarks/bench.py

docs: $(VENV)/.installed-docs ## the documents as a site: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html is the first page; python3 -m http.server -d site serves it, with search"

gallery: $(VENV)/.installed ## the page and the pictures of docs/gallery.md, from the runs of table3; SEEDS=1,2,3 chooses them
	$(BIN)/python docs/record.py $(if $(SEEDS),seed=$(SEEDS))

check: $(VENV)/.installed-dev ## format, lint, types, and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python docs/options.py

lock: $(VENV)/.installed-all ## constraints.txt anew: the versions that are installed here
	$(BIN)/python -m pip list --format=freeze --exclude-editable --exclude pip > $(VENV)/versions
	echo '# What étude was tested with: pip install -c constraints.txt -e .   (make lock renews it)' > constraints.txt
	sed -E '/^(nvidia|cuda|triton)/d; s/\+.*//' $(VENV)/versions >> constraints.txt # as PyTorch pins them; for CPU and CUDA alike

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("étude needs Python 3.11.4 or newer; this is " + sys.version.split()[0] + ": make PYTHON=python3.11 ...") if sys.version_info < (3, 11, 4) else None'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "no virtual environment: install python3-venv, then make again"; exit 1; }

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable .
	@touch $@

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable '.[$*]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-all: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable '.[dev,bench,tensorboard]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV)
