# Everything installs what it needs into a virtual environment of its own; nothing outside this folder is touched.
# Needs: Python 3.11+ with venv, a C++20 compiler, make, bash. CMake and Ninja come from PyPI.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
JOBS ?= 2
# Passed on: make test ARGS="-k index", make bench ARGS=--quick
ARGS ?=
# How long each fuzz target runs.
SECONDS_EACH := $(if $(filter command line environment,$(origin SECONDS)),$(SECONDS),30)

PIP_QUIET := --quiet --disable-pip-version-check
# Exact versions of everything in the test environments, also for packages that pip builds: see `make constraints`.
PINNED := PIP_CONSTRAINT=tests/constraints.txt PIP_BUILD_CONSTRAINT=tests/constraints.txt
BUILD_NEEDS := "scikit-build-core>=1.1" "nanobind>=3.1,<4" cmake ninja
# Extras that are not frameworks: Parquet, queries and the viewer are tested, too; httpx2 is for its test client.
TEST_NEEDS := "pytest>=8" "pytest-timeout>=2.3" "pytest-xdist>=3.5" "hypothesis>=6.100" "pyarrow>=15" "duckdb>=2,<3" "starlette>=1,<2" "uvicorn>=0.30" "httpx2>=2"
# Exact, so that a new release of a linter turns no build red.
LINT_NEEDS := "ruff==0.17.5" "mypy==2.4.1" "clang-format==23.1.3"
# Engines that `tfr build --engine` runs on; tests/cluster starts real clusters on this machine.
CLUSTER_NEEDS := "ray==2.60.*" "distributed==2026.8.*" pandas fsspec
# Spark needs Java 17 and has no use for the engines.
SPARK_NEEDS := "pyspark==4.3.*"
INTEROP_NEEDS := "tensorflow-cpu==2.21.*" tensorflow-datasets pyarrow pandas polars duckdb datasets torch==2.13.0 torchdata jax grain

# The viewer's page is tested in Debian's Chromium, its accessibility with axe.
VIEW_NEEDS := "playwright>=1.50"
AXE := axe-core@4.14.0
# Pages run with these, exact where what they print depends on it.
PAGE_NEEDS := "pillow==13.0.0" "pandas==3.1.1" "polars==2.1.0" "torch==2.13.0" "jax==0.10.2" "moto[s3]>=5.2" flask flask-cors
# The site; Sphinx 9.0 is the last for Python 3.11.
SITE_NEEDS := "sphinx==9.0.4" "myst-parser==5.2.0" "furo==2025.12.19"
# Object storage is tested on servers: moto (S3), Azurite (Azure), nginx, and one of ours that misbehaves.
REMOTE_NEEDS := "moto[s3]>=5.2" flask flask-cors
AZURITE := azurite@3.37.0

# A change to any of these means the installed package is not the one in this folder.
NATIVE := $(shell find native/core native/os native/engine native/bindings -name '*.h' -o -name '*.cc')
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE $(shell find share -type f) $(NATIVE) $(shell find src -name '*.py' -o -name '*.pyi' -o -name py.typed -o -path '*/view/web/*')
# Deleting a file leaves no newer file, so folders are dependencies, too.
SOURCES += $(shell find src native/core native/os native/engine native/bindings -type d -not -path "*/.*" -not -name __pycache__)
NATIVE_FORMATTED = $$(find native -name '*.h' -o -name '*.cc')

.PHONY: help
help:  ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

# ---- environments -------------------------------------------------------------------------------------------------

MAKE_VENV = @$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %d.%d: make PYTHON=python3.11" % sys.version_info[:2]) if sys.version_info < (3, 11) else None' && $(PYTHON) -m venv

# Tools first, tfrkit after: a change to the sources installs tfrkit again and nothing else.
.venv/.tools: Makefile tests/constraints.txt
	$(MAKE_VENV) .venv
	$(PINNED) .venv/bin/python -m pip install $(PIP_QUIET) $(BUILD_NEEDS) $(TEST_NEEDS) $(LINT_NEEDS)
	touch $@

.venv-interop/.tools: Makefile tests/constraints.txt
	$(MAKE_VENV) .venv-interop
	$(PINNED) .venv-interop/bin/python -m pip install $(PIP_QUIET) $(TEST_NEEDS) $(INTEROP_NEEDS)
	touch $@

.venv-cluster/.tools: Makefile tests/constraints.txt
	$(MAKE_VENV) .venv-cluster
	$(PINNED) .venv-cluster/bin/python -m pip install $(PIP_QUIET) $(TEST_NEEDS) $(CLUSTER_NEEDS) $(REMOTE_NEEDS)
	touch $@

.venv-plain/.tools: Makefile tests/constraints.txt
	$(MAKE_VENV) .venv-plain
	$(PINNED) .venv-plain/bin/python -m pip install $(PIP_QUIET) $(TEST_NEEDS)
	touch $@

.venv-spark/.tools: Makefile tests/constraints.txt
	$(MAKE_VENV) .venv-spark
	$(PINNED) .venv-spark/bin/python -m pip install $(PIP_QUIET) $(TEST_NEEDS) $(SPARK_NEEDS)
	touch $@

.venv-view/.tools: Makefile tests/constraints.txt
	$(MAKE_VENV) .venv-view
	$(PINNED) .venv-view/bin/python -m pip install $(PIP_QUIET) $(TEST_NEEDS) $(VIEW_NEEDS)
	touch $@

.venv-remote/.tools: Makefile tests/constraints.txt
	$(MAKE_VENV) .venv-remote
	$(PINNED) .venv-remote/bin/python -m pip install $(PIP_QUIET) $(TEST_NEEDS) $(REMOTE_NEEDS)
	touch $@

.venv-pages/.tools: Makefile
	$(MAKE_VENV) .venv-pages
	.venv-pages/bin/python -m pip install $(PIP_QUIET) $(TEST_NEEDS) $(PAGE_NEEDS)
	touch $@

.venv-bench/.tools: Makefile benchmarks/requirements.txt benchmarks/build-constraints.txt
	$(MAKE_VENV) .venv-bench
	PIP_CONSTRAINT=benchmarks/build-constraints.txt PIP_BUILD_CONSTRAINT=benchmarks/build-constraints.txt \
	    .venv-bench/bin/python -m pip install $(PIP_QUIET) -r benchmarks/requirements.txt
	touch $@

.venv-bench-more/.tools: benchmarks/requirements-more.txt
	$(MAKE_VENV) .venv-bench-more
	.venv-bench-more/bin/python -m pip install $(PIP_QUIET) -r benchmarks/requirements-more.txt
	touch $@

.venv-asan/.tools .venv-tsan/.tools: %/.tools: Makefile tests/constraints.txt
	$(MAKE_VENV) $*
	$(PINNED) $*/bin/python -m pip install $(PIP_QUIET) $(BUILD_NEEDS) $(TEST_NEEDS)
	touch $@

# Raises every version: the environments are made without the file, then it is written from what pip chose.
PINNED_VENVS := .venv .venv-interop .venv-view .venv-remote .venv-cluster .venv-spark
.PHONY: constraints
constraints:  ## make the test environments with the newest packages, write their versions to tests/constraints.txt
	rm -rf $(PINNED_VENVS)
	: >tests/constraints.txt
	$(MAKE) $(PINNED_VENVS:=/.installed)
	.venv/bin/python tests/constraints.py $(PINNED_VENVS)

# Built once for all environments. The build folder is kept, so that only what changed is compiled again.
build/wheel/.built: .venv/.tools $(SOURCES)
	rm -rf build/wheel
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m pip wheel $(PIP_QUIET) --no-build-isolation --no-deps --wheel-dir build/wheel .
	touch $@

# The version does not change with the sources, so pip needs --force-reinstall.
.venv/.installed .venv-interop/.installed .venv-cluster/.installed .venv-spark/.installed .venv-view/.installed .venv-remote/.installed .venv-plain/.installed .venv-pages/.installed .venv-bench/.installed: %/.installed: %/.tools build/wheel/.built
	$*/bin/python -m pip install $(PIP_QUIET) --force-reinstall --no-deps build/wheel/*.whl
	$(if $(filter .venv-bench,$*),,$(PINNED)) $*/bin/python -m pip install $(PIP_QUIET) "$$(echo build/wheel/*.whl)$(EXTRAS)"
	touch $@

.venv-remote/.installed .venv-cluster/.installed .venv-pages/.installed: EXTRAS := [remote]

.venv-asan/.installed: SANITIZER := TFRKIT_SANITIZE
.venv-tsan/.installed: SANITIZER := TFRKIT_SANITIZE_THREADS
.venv-asan/.installed .venv-tsan/.installed: .venv-%/.installed: .venv-%/.tools $(SOURCES)
	$(PINNED) PATH="$(CURDIR)/.venv-$*/bin:$$PATH" .venv-$*/bin/python -m pip install $(PIP_QUIET) --no-build-isolation \
	    -C cmake.define.$(SANITIZER)=ON -C cmake.define.TFRKIT_WERROR=ON -C cmake.build-type=RelWithDebInfo -C build-dir=build-$* -C install.strip=false .
	touch $@

include tests/trust/targets.mk

# ---- what people run ----------------------------------------------------------------------------------------------

.PHONY: demo
demo: .venv/.installed  ## write, read, verify and damage a small dataset, and say what happened
	.venv/bin/python examples/demo.py $(ARGS)

.PHONY: test
test: test-native test-python  ## the C++ tests, then the Python tests (no framework needed)

.PHONY: build-native
build-native: .venv/.tools
	@echo 'native: building'
	@.venv/bin/cmake -S . -B build-native -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/.venv/bin/ninja" \
	    -DTFRKIT_NATIVE_TESTS=ON -DTFRKIT_WERROR=ON -DCMAKE_BUILD_TYPE=Release >build-native.log || { cat build-native.log; exit 1; }
	@.venv/bin/cmake --build build-native --parallel $(JOBS) >>build-native.log || { cat build-native.log; exit 1; }
	@rm -f build-native.log

.PHONY: test-native
test-native: build-native
	@$(call run_ctest,build-native)

.PHONY: test-python
test-python: .venv/.installed
	.venv/bin/python -m pytest tests --ignore=tests/interop --ignore=tests/cluster --ignore=tests/site -m "not resources" -n $(JOBS) $(ARGS)
	.venv/bin/python -m pytest tests --ignore=tests/interop --ignore=tests/cluster --ignore=tests/pages --ignore=tests/site -m resources $(ARGS) || [ $$? = 5 ]  # 5: ARGS chose none of them

# isal, zlib-ng and simplejpeg have no wheel everywhere; without them everything works the same, only slower.
.PHONY: test-plain
test-plain: .venv-plain/.installed  ## the Python tests without isal, zlib-ng and simplejpeg
	.venv-plain/bin/python -m pip uninstall $(PIP_QUIET) --yes isal zlib-ng simplejpeg
	.venv-plain/bin/python -m pytest tests --ignore=tests/interop --ignore=tests/cluster --ignore=tests/pages --ignore=tests/site -m "not resources" -n $(JOBS) $(ARGS)

.PHONY: view-test
view-test: .venv-view/.installed build/view/axe.min.js  ## the viewer's page in a real Chromium; screenshots in build/view/screenshots; LAB=1 also in JupyterLab
	tests/view/browser/install_tools.sh
	@if [ -n "$(LAB)" ]; then .venv-view/bin/python -m pip install -q jupyterlab jupyter-server-proxy; fi
	.venv-view/bin/python -m pytest tests/view/browser -n $(JOBS) $(ARGS)

build/view/axe.min.js: Makefile
	tests/view/browser/install_tools.sh
	mkdir -p build/view
	npm pack --silent --pack-destination build/view $(AXE)
	tar -xzf build/view/axe-core-*.tgz -C build/view --strip-components=1 package/axe.min.js
	rm build/view/axe-core-*.tgz
	touch $@

.PHONY: remote-test
remote-test: .venv-remote/.installed build/azurite/.installed  ## object storage: S3, GCS, Azure and HTTP on servers of this machine, with faults (TIMES=100: that many kills)
	tests/remote/install_tools.sh
	TFR_KILLS=$(or $(TIMES),3) .venv-remote/bin/python -m pytest tests/remote -n $$((2 * $(JOBS))) $(ARGS)  # they mostly wait

build/azurite/.installed: Makefile
	tests/remote/install_tools.sh
	npm install --silent --no-audit --no-fund --no-save --prefix build/azurite $(AZURITE)
	touch $@

# Their seed is printed; SHARE and TIMES make them shorter, ARGS="--seed 7 --only convert" repeats one.
.PHONY: faults kills limits
faults: .venv/.installed  ## let each system call of each command fail (SHARE=1: every one)
	.venv/bin/python tests/trust/faults.py --share $(or $(SHARE),1) $(ARGS)
kills: .venv/.installed  ## kill, terminate and interrupt each command that writes, TIMES=100 each
	.venv/bin/python tests/trust/kills.py --times $(or $(TIMES),100) $(ARGS)
	.venv/bin/python tests/trust/part_kills.py --times $(or $(TIMES),100)
limits: .venv/.installed  ## run each command with little memory, few files, small files, few processes, a read-only folder
	.venv/bin/python tests/trust/limits.py --share $(or $(SHARE),1) $(ARGS)

.PHONY: pictures
pictures: .venv-view/.installed  ## make the pictures of the viewer in docs/pictures, for the READMEs
	tests/view/browser/install_tools.sh
	.venv-view/bin/python docs/pictures/make.py

.PHONY: interop
interop: .venv-interop/.installed  ## real TensorFlow and TFDS read what we write, and the other way round
	TF_CPP_MIN_LOG_LEVEL=2 .venv-interop/bin/python -m pytest tests/interop $(ARGS)

.PHONY: cluster
cluster: .venv-cluster/.installed  ## builds and verbs on real Ray and Dask clusters, with killed and stopped workers; LONG=1: 20 kills each
	LONG=$(LONG) .venv-cluster/bin/python -m pytest tests/cluster --ignore=tests/cluster/spark $(ARGS)

.PHONY: spark
spark: .venv-spark/.installed  ## TFRecords in a real Spark on this machine; needs Java 17
	.venv-spark/bin/python -m pytest tests/cluster/spark $(ARGS)

.PHONY: bench
bench: .venv-bench/.installed $(if $(MORE),.venv-bench-more/.tools)  ## time tfrkit against TensorFlow and peers, write benchmarks/RESULTS.md (ARGS=--quick: smoke; MORE=1: two more peers)
	TF_CPP_MIN_LOG_LEVEL=2 .venv-bench/bin/python benchmarks/run.py $(if $(MORE),--more .venv-bench-more/bin/python) $(ARGS)

.PHONY: fuzz
fuzz:  ## feed the native core hostile bytes, SECONDS=30 for each target (needs clang); prints executions, coverage, findings
	$(PYTHON) native/fuzz/run.py --seconds $(SECONDS_EACH) --jobs $(JOBS) $(ARGS)

.PHONY: stress
stress: .venv/.installed  ## eight threads read at random, with closes, damage and Ctrl-C, for SECONDS=30
	.venv/bin/python tests/stress/run.py --seconds $(SECONDS_EACH) $(ARGS)

.PHONY: sanitize
sanitize: sanitize-native sanitize-threads sanitize-python sanitize-python-threads  ## C++ and Python tests under the address, undefined-behaviour and (engine, batches) thread sanitizers

.PHONY: sanitize-native
sanitize-native: .venv-asan/.tools
	.venv-asan/bin/cmake -S . -B build-asan-native -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/.venv-asan/bin/ninja" \
	    -DTFRKIT_NATIVE_TESTS=ON -DTFRKIT_WERROR=ON -DTFRKIT_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo
	.venv-asan/bin/cmake --build build-asan-native --parallel $(JOBS)
	@$(call run_ctest,build-asan-native)

# The engine and the pool alone: other tests replace mapped pages in a signal handler on purpose. Where the system places
# memory at random in more bits than the sanitizer expects, it runs without that.
.PHONY: sanitize-threads
sanitize-threads: .venv-asan/.tools  ## the engine's C++ tests under the thread sanitizer, SECONDS=30 of stress
	.venv-asan/bin/cmake -S . -B build-tsan-native -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/.venv-asan/bin/ninja" \
	    -DTFRKIT_NATIVE_TESTS=ON -DTFRKIT_WERROR=ON -DTFRKIT_SANITIZE_THREADS=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo
	.venv-asan/bin/cmake --build build-tsan-native --parallel $(JOBS)
	for suite in BatchEngine Pool; do \
	    TFRKIT_STRESS_SECONDS=$(SECONDS_EACH) TSAN_OPTIONS=halt_on_error=1 setarch --addr-no-randomize build-tsan-native/native/tests/tfrkit_tests $$suite || exit 1; done

# The C++ runtime must be preloaded with the sanitizer's, or the process dies at the first C++ exception.
# Leak reports are off because CPython itself never frees everything. Only Python's own output is captured: a report of
# the sanitizer would end with the process.
.PHONY: sanitize-python
sanitize-python: .venv-asan/.installed  ## the Python tests with a sanitized core; TESTS="tests/unit/codec" for some of them
	CXX="$${CXX:-g++}"; \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
	PYTHONMALLOC=malloc TFRKIT_SANITIZE=1 \
	LD_PRELOAD="$$($$CXX -print-file-name=libasan.so) $$($$CXX -print-file-name=libstdc++.so)" \
	.venv-asan/bin/python -m pytest $(or $(TESTS),tests) --ignore=tests/interop --ignore=tests/cluster --ignore=tests/pages --ignore=tests/site -m "not resources" -o timeout=3600 --capture=sys $(ARGS)

# Python itself is not instrumented; its lock is one that the sanitizer knows. New threads in a forked process are not.
.PHONY: sanitize-python-threads
sanitize-python-threads: .venv-tsan/.installed  ## the Python tests of batches under the thread sanitizer; TESTS="tests/unit/passes" for others
	CXX="$${CXX:-g++}"; \
	TSAN_OPTIONS="report_signal_unsafe=0 suppressions=$(CURDIR)/native/tsan-suppressions.txt" TFRKIT_SANITIZE=1 LD_PRELOAD="$$($$CXX -print-file-name=libtsan.so)" \
	setarch --addr-no-randomize .venv-tsan/bin/python -m pytest $(or $(TESTS),tests/unit/batches) -m "not resources" \
	    -k "not forked_process" -o timeout=3600 --capture=sys $(ARGS)

.PHONY: compilers
compilers: .venv/.tools  ## build and run the C++ tests with every g++ and clang there is, and with zig for other machines
	JOBS=$(JOBS) native/compilers.sh

.PHONY: lint
lint: .venv/.installed build-native  ## ruff, mypy --strict, clang-format, warnings of the compiler, the committed stub
	.venv/bin/ruff check .
	.venv/bin/ruff check --preview --select PLW1514 src  # an encoding for every text file: Windows has another
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/clang-format --dry-run -Werror $(NATIVE_FORMATTED)
	.venv/bin/python -m nanobind.stubgen -q -m tfrkit._core -o build/_core.pyi
	diff -u src/tfrkit/_core.pyi build/_core.pyi || { echo "src/tfrkit/_core.pyi is not current: make stub"; exit 1; }

.PHONY: stub
stub: .venv/.installed  ## write src/tfrkit/_core.pyi from the built module
	.venv/bin/python -m nanobind.stubgen -q -m tfrkit._core -o src/tfrkit/_core.pyi

.PHONY: format
format: .venv/.tools  ## rewrite sources in the house format
	.venv/bin/ruff check --fix-only --quiet .
	.venv/bin/ruff format .
	.venv/bin/clang-format -i $(NATIVE_FORMATTED)

.PHONY: docs
docs: .venv/.installed  ## write the reference below docs/look-up from the code
	.venv/bin/python docs/generate.py

.PHONY: docs-test
docs-test: .venv-pages/.installed  ## run every block of every page, in both languages, and compare what it prints
	TFRKIT_PAGES=all .venv-pages/bin/python -m pytest tests/pages -n $(JOBS) $(ARGS)

.PHONY: docs-update
docs-update: .venv-pages/.installed  ## write what the blocks print into the pages (PAGES="docs/do/edit.md")
	.venv-pages/bin/python docs/run_pages.py --update $(PAGES)

.venv-site/.tools: Makefile
	$(MAKE_VENV) .venv-site
	.venv-site/bin/python -m pip install $(PIP_QUIET) $(SITE_NEEDS) || \
	    { echo 'Sphinx cannot be had from PyPI. Without a network read the same pages in docs/index.md, tfr --help and man tfr.' >&2; exit 1; }
	touch $@

.PHONY: site
site: .venv-site/.tools  ## build the documentation as a site that works from the folder build/site
	.venv-site/bin/python -m sphinx --quiet --fail-on-warning --keep-going -j $(JOBS) -c docs/site docs build/site
	@echo 'build/site/index.html'

.PHONY: site-test
site-test: site .venv-view/.installed build/view/axe.min.js  ## the site in a real Chromium: search in both languages, accessibility, no network
	.venv-view/bin/python -m pytest tests/site $(ARGS)

.PHONY: docs-mutants
docs-mutants: .venv-pages/.installed  ## change 50 random places of pages, and expect a failing check for each (SEED=0)
	.venv-pages/bin/python docs/mutants.py --count $(or $(COUNT),50) --seed $(or $(SEED),0) $(ARGS)

.PHONY: wheel
wheel: build/wheel/.built  ## build a wheel into dist/
	mkdir -p dist && cp build/wheel/*.whl dist/

.PHONY: clean
clean:  ## remove environments, builds and caches
	rm -rf .venv .venv-interop .venv-cluster .venv-spark .venv-view .venv-remote .venv-pages .venv-site .venv-bench .venv-bench-more .venv-plain .venv-fuzz .venv-asan .venv-tsan .venv-zig build build-* dist demo .bench
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests examples docs benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

include release/release.mk

# Each test program ends with "N passed, N failed"; the log shows their sum, and everything where one failed.
define run_ctest
cd $(1) && { "$$(sed -n 's/^CMAKE_CTEST_COMMAND:INTERNAL=//p' CMakeCache.txt)" -V >ctest.log 2>&1 && status=0 || status=$$?; }; \
[ $$status = 0 ] || cat ctest.log; \
sed -n 's/^[0-9]*: \([0-9]*\) passed, \([0-9]*\) failed.*/\1 \2/p' ctest.log | \
    awk '{ passed += $$1; failed += $$2 } END { print "native: " passed + 0 " passed, " failed + 0 " failed" }'; \
[ $$status = 0 ]
endef
