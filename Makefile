# A short form of the CMake calls. Linux, gcc or clang (CC=clang CXX=clang++ make).
#
#   make            builds the command build/attend and the libraries in build/; names what is missing, installs nothing
#   make deps       installs what the build needs (Debian and Ubuntu)
#   make deps-mpi   installs Open MPI, for training by several processes; build again afterwards
#   make demo       deps, build, then self-attention step by step and four small models that are trained on the spot
#   make test       deps, a build with the sanitizers in build/check, every test
#   make test-page  deps, build, then the pages of attend serve in a real browser (installs chromium, npm, puppeteer-core,
#                   axe-core); ATTEND=FILE tests the command of another build
#   make test-clients  six npm clients of LibreTranslate and Debian's dialect against attend serve; ATTEND=FILE as above
#   make test-python   the Python package, with pytest; LIBRARY=FILE tests it with the libattend.so of another build
#   make wasm       the library for browsers and node: build/wasm/page has attend.js, attend.wasm and the page of examples/wasm
#   make test-wasm  the module in node against the plain kernels, byte by byte, and the page in chromium
#   make load       attend serve under load for LOAD_SECONDS (600): LOAD_MODEL, from de to en, and LOAD_LINES, source lines
#   make check-long the tests on the optimised release build, with more models and a million lines, the ABI
#                   against the stored one, the unit tests on aarch64 under qemu, make package, make test-wasm,
#                   make judge, and make torture
#   make judge      CTranslate2 itself, in a Debian 13 in build/judge, translates with models that attend wrote for it
#   make abi        replaces the stored ABI (tests/abi/libattend.abi), for a new minor version
#   make clang      builds the command and the tests with clang in build/clang
#   make torture    attacks the command and the library for hours; TORTURE=short takes less than a minute for
#                   each, ATTACKS='kill resume' runs only these; JOBS of them at the same time
#   make fuzz       20 seconds of each fuzzer (FUZZ_SECONDS), or FUZZ_RUNS inputs, built with clang in build/fuzz; FUZZ_SEED=1
#                   repeats the same inputs
#   make bench      times matrix products, attention, convolutions, and a recurrent layer against attention
#   make peers      installs the libraries that they are compared with
#   make install    PREFIX=/usr/local, DESTDIR honoured; PYTHON_DIR=FOLDER installs the Python package there
#   make dist       build/attend-VERSION.tar.gz of the last commit, the same bytes each time
#   make package    dist, then Debian packages of it in build/package, checked by lintian, installed into a folder and run
#   make format     clang-format over the whole tree
#   make clean
#
# WERROR=ON treats warnings as errors.

PREFIX       ?= /usr/local
JOBS         ?= $(shell nproc 2>/dev/null || echo 2)
WERROR       ?= OFF
FUZZ_SECONDS ?= 20
FUZZ_RUNS    ?=
FUZZ_SEED    ?=
TORTURE      ?= full
ATTACKS      ?=

# Debian's names: the tools, and the libraries of cmake/needs.txt.
PACKAGES      = gcc g++ make cmake pkg-config librandom123-dev $(shell sed -n 's/^[?+A-Z].* //p' cmake/needs.txt)
TEST_PACKAGES = libcmocka-dev
LONG_PACKAGES = abigail-tools gcc-aarch64-linux-gnu qemu-user $(PACKAGE_PACKAGES)
TORTURE_PACKAGES = valgrind
# Debian packages npm separately; other distributions include it in nodejs.
PAGE_PACKAGES = chromium nodejs $(if $(shell command -v npm),,npm)

PACKAGE_PACKAGES = debhelper dh-python lintian fakeroot
WASM_PACKAGES = emscripten nodejs
PYTHON_PACKAGES = python3-pytest python3-numpy
JUDGE_PACKAGES = mmdebstrap $(if $(shell command -v npm),,npm)
# Debian's packages are for Debian's Python, whichever comes first in the path.
PYTHON       ?= $(firstword $(wildcard /usr/bin/python3) python3)

# A build with nothing to do prints nothing.
MAKEFLAGS += --no-print-directory
CONFIGURE = cmake -S . -DCMAKE_TARGET_MESSAGES=OFF -DAT_WERROR=$(WERROR)
CHECK     = -DAT_TESTS=ON

all: build

tools:
	@missing=; \
	for tool in cmake pkg-config $(CC) $(CXX); do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	[ -z "$$missing" ] || { echo "make: these programs are missing:$$missing; make deps installs all that is needed" >&2; exit 1; }

deps:
	@bash cmake/packages.sh $(PACKAGES)

deps-mpi:
	@bash cmake/packages.sh openmpi-bin $(shell sed -n 's/^[*].* //p' cmake/needs.txt)

test-deps:
	@bash cmake/packages.sh $(PACKAGES) $(TEST_PACKAGES)

build: tools
	@$(CONFIGURE) -B build >/dev/null
	@cmake --build build -j $(JOBS)

demo: deps
	@$(MAKE) build
	@for name in self-attention antonyms beer dates scenes; do build/attend demo $$name --all && echo || exit 1; done
	@echo "The same to play with, in a browser: build/attend serve, then http://127.0.0.1:5000/lesson"

test: test-deps
	@$(CONFIGURE) -B build/check $(CHECK) -DAT_SANITIZE=ON >/dev/null
	@cmake --build build/check -j $(JOBS)
	@bash tests/run.sh build/check

test-page: deps
	@bash cmake/packages.sh $(PAGE_PACKAGES)
	@[ -n "$(ATTEND)" ] || $(MAKE) build
	@bash tests/page/run.sh $(or $(ATTEND),build/attend) build/page

test-clients: deps
	@bash cmake/packages.sh nodejs $(if $(shell command -v npm),,npm) python3-gi gir1.2-soup-3.0
	@[ -n "$(ATTEND)" ] || $(MAKE) build
	@bash tests/clients/run.sh $(or $(ATTEND),build/attend) build/clients

test-python: deps
	@bash cmake/packages.sh $(PYTHON_PACKAGES)
	@[ -n "$(LIBRARY)" ] || $(MAKE) build
	@ATTEND_LIBRARY=$$(realpath $(or $(LIBRARY),build/libattend.so)) $(PYTHON) -m pytest -q -rs -p no:cacheprovider tests/python

wasm: deps
	@bash cmake/packages.sh $(WASM_PACKAGES)
	@$(MAKE) build
	@bash wasm/build.sh build/attend build/wasm

test-wasm: deps
	@bash cmake/packages.sh $(WASM_PACKAGES) chromium
	@$(MAKE) build
	@bash tests/wasm/run.sh build build/wasm

load: deps
	@bash cmake/packages.sh nodejs wrk curl
	@[ -n "$(ATTEND)" ] || $(MAKE) build
	@bash tests/load/load.sh $(or $(ATTEND),build/attend) $(or $(LOAD_MODEL),$(error LOAD_MODEL is a model from de to en)) \
	    $(or $(LOAD_LINES),$(error LOAD_LINES is a file of its source lines)) $(or $(LOAD_SECONDS),600)

check-long: test
	@bash cmake/packages.sh $(LONG_PACKAGES)
	@$(CONFIGURE) -B build/check-release $(CHECK) -DAT_LONG=ON >/dev/null
	@cmake --build build/check-release -j $(JOBS)
	@ATTEND_LONG=1 bash tests/run.sh build/check-release
	@$(MAKE) test-wasm
	@$(MAKE) judge
	@$(MAKE) torture

judge: build
	@bash cmake/packages.sh $(JUDGE_PACKAGES)
	@bash tests/judge/ctranslate2.sh build/attend build/judge || [ $$? = 77 ]

abi:
	@bash cmake/packages.sh abigail-tools $(PACKAGES)
	@bash tests/abi.sh build/abi --write

clang:
	@bash cmake/packages.sh clang $(PACKAGES) $(TEST_PACKAGES)
	@CC=clang CXX=clang++ $(CONFIGURE) -B build/clang $(CHECK) >/dev/null
	@cmake --build build/clang -j $(JOBS)

fuzz:
	@bash cmake/packages.sh clang $(PACKAGES)
	@CC=clang CXX=clang++ $(CONFIGURE) -B build/fuzz -DAT_FUZZ=ON -DAT_BENCH=OFF >/dev/null
	@cmake --build build/fuzz -j $(JOBS) --target fuzzers
	@FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_RUNS=$(FUZZ_RUNS) FUZZ_SEED=$(FUZZ_SEED) bash fuzz/run.sh build/fuzz

torture: test-deps
	@bash cmake/packages.sh $(TORTURE_PACKAGES)
	@TORTURE=$(TORTURE) bash tests/torture/run.sh $(ATTACKS)

bench: build
	@build/attend bench gemm
	@build/attend bench attention
	@build/attend bench conv
	@build/attend bench rnn-vs-attention

peers: build
	@bash bench/peers.sh

install: tools
	@$(CONFIGURE) -B build -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DAT_PYTHON_DIR=$(PYTHON_DIR) >/dev/null
	@cmake --build build -j $(JOBS)
	@DESTDIR=$(DESTDIR) cmake --install build

dist:
	@bash cmake/dist.sh build

package: deps
	@bash cmake/packages.sh $(PACKAGE_PACKAGES)
	@bash tests/package.sh build/package

format:
	@git ls-files '*.c' '*.h' '*.cc' '*.cpp' | xargs clang-format -i

clean:
	@rm -rf build

.PHONY: all tools deps deps-mpi test-deps build demo test test-page test-clients test-python wasm test-wasm load check-long judge abi clang fuzz torture bench peers install dist package format clean
