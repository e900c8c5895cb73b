# Long runs that try to break tfrkit: see docs/design/trust.md. Included by the Makefile.

# Coverage-guided mutation of what Python parses.
FUZZ_NEEDS := "atheris==3.0.0"

.venv-fuzz/.tools: Makefile tests/constraints.txt
	$(MAKE_VENV) .venv-fuzz
	$(PINNED) .venv-fuzz/bin/python -m pip install $(PIP_QUIET) $(TEST_NEEDS) $(FUZZ_NEEDS)
	touch $@

.venv-fuzz/.installed: .venv-fuzz/.tools build/wheel/.built
	$(PINNED) .venv-fuzz/bin/python -m pip install $(PIP_QUIET) --force-reinstall --no-deps build/wheel/*.whl
	$(PINNED) .venv-fuzz/bin/python -m pip install $(PIP_QUIET) build/wheel/*.whl
	touch $@

.PHONY: fuzz-python
fuzz-python: .venv-fuzz/.installed  ## feed sidecars, schemas, states, annotations and queries hostile bytes, SECONDS=30 for each (atheris)
	.venv-fuzz/bin/python tests/trust/fuzz_python.py --seconds $(SECONDS_EACH) $(ARGS)

# Fixed seeds and small shares of the long runs, for every change: two minutes together. SIGKILL alone: the moments of
# a signal are never the same twice, and what a handler misses once in a thousand times is for `make kills`.
.PHONY: trust-short
trust-short: .venv/.installed  ## short forms of faults, kills and limits, with a fixed seed
	.venv/bin/python tests/trust/faults.py --share 0.01 --seed 1 $(ARGS)
	.venv/bin/python tests/trust/kills.py --times 1 --signal SIGKILL --seed 1 $(ARGS)
	.venv/bin/python tests/trust/part_kills.py --times 1 --seed 1
	.venv/bin/python tests/trust/limits.py --share 0.05 --seed 1 $(ARGS)

# .venv-remote: a store that fails is part of it. SECONDS is of the viewer; ARGS="--only memory --seed 7" repeats one.
.PHONY: load
load: .venv-remote/.installed  ## ten minutes of the viewer under 200 clients, 64 readers, 100,000 opens, an hour of a store with 5 % errors
	.venv-remote/bin/python tests/trust/load.py --seconds $(if $(filter command line environment,$(origin SECONDS)),$(SECONDS),600) $(ARGS)

.PHONY: mutants
mutants: .venv/.installed  ## change one operator at a time, and see whether the tests of that room notice (NUMBER=15 per room and more for large ones, ARGS="--room orders --seed 7")
	.venv/bin/python tests/trust/mutants.py --number $(or $(NUMBER),15) $(ARGS)
