# Long runs that try to break tfrkit: see docs/design/trust.md. Included by the Makefile.

# Coverage-guided mutation of what Python parses.
FUZZ_NEEDS := "atheris==3.0.0"

.venv-fuzz/.tools: Makefile tests/constraints.txt
	$(PYTHON) -m venv .venv-fuzz
	$(PINNED) .venv-fuzz/bin/python -m pip install $(PIP_QUIET) $(TEST_NEEDS) $(FUZZ_NEEDS)
	touch $@

.venv-fuzz/.installed: .venv-fuzz/.tools build/wheel/.built
	$(PINNED) .venv-fuzz/bin/python -m pip install $(PIP_QUIET) --force-reinstall --no-deps build/wheel/*.whl
	$(PINNED) .venv-fuzz/bin/python -m pip install $(PIP_QUIET) build/wheel/*.whl
	touch $@

.PHONY: fuzz-python
fuzz-python: .venv-fuzz/.installed  ## feed sidecars, schemas, states, annotations and queries hostile bytes, SECONDS=30 for each (atheris)
	.venv-fuzz/bin/python tests/trust/fuzz_python.py --seconds $(SECONDS_EACH) $(ARGS)
