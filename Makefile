# The front door. `make` installs what is missing and builds; CMake does the work behind it.
#
#   make            deps + build: the command is build/attend, the libraries lie beside it
#   make demo       self-attention step by step, then three small models that learn as you watch
#   make test       builds with the sanitizers in build/check and runs every test
#   make check-long the tests again, on the optimised build as it ships, with more models and a million lines
#   make bench      times the inner product, attention, and a recurrent layer against attention
#   make peers      installs the rivals that it is timed against
#   make install    PREFIX=/usr/local, DESTDIR honoured
#   make format     clang-format over the whole tree
#   make clean

PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)

PACKAGES = gcc g++ make cmake pkg-config libjansson-dev librandom123-dev libutf8proc-dev libsentencepiece-dev libcmocka-dev

# A build that has nothing to do says nothing.
MAKEFLAGS += --no-print-directory
CONFIGURE = cmake -S . -DCMAKE_TARGET_MESSAGES=OFF
CHECK     = -DAT_TESTS=ON

all: build

# Says and does nothing when every package is there, or when this is no Debian (then the build itself names what it misses).
deps:
	@command -v dpkg-query >/dev/null || exit 0; \
	missing=; \
	for package in $(PACKAGES); do \
	    dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; \
	done; \
	[ -z "$$missing" ] && exit 0; \
	as_root=; [ "$$(id -u)" = 0 ] || as_root=sudo; \
	echo "installing$$missing"; \
	$$as_root apt-get update -q && $$as_root apt-get install -y -q --no-install-recommends $$missing

build: deps
	@$(CONFIGURE) -B build >/dev/null
	@cmake --build build -j $(JOBS)

demo: build
	@for name in self-attention antonyms beer dates; do build/attend demo $$name && echo || exit 1; done

test: deps
	@$(CONFIGURE) -B build/check $(CHECK) -DAT_SANITIZE=ON >/dev/null
	@cmake --build build/check -j $(JOBS)
	@bash tests/run.sh build/check

check-long: test
	@$(CONFIGURE) -B build/check-release $(CHECK) >/dev/null
	@cmake --build build/check-release -j $(JOBS)
	@ATTEND_LONG=1 bash tests/run.sh build/check-release

bench: build
	@build/attend bench gemm
	@build/attend bench attention
	@build/attend bench rnn-vs-attention

peers: build
	@bash bench/peers.sh

install: deps
	@$(CONFIGURE) -B build -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build build -j $(JOBS)
	@DESTDIR=$(DESTDIR) cmake --install build

format:
	@git ls-files '*.c' '*.h' '*.cc' '*.cpp' | xargs clang-format -i

clean:
	@rm -rf build

.PHONY: all deps build demo test check-long bench peers install format clean
