# The engine's interface at work: the example tool xfer, its tests, faults at every call, and its speed.
#
#   xfer            build/xfer, from c-tests/xfer.c
#   engine-tests    xfer over TCP, pipes and ssh; the fault matrix (FAULT_MATRIX=full: all of it)
#   engine-bench    1 GiB through pipes and TCP, beside cat and rsync

ENGINE_LIBRARY ?= target/release/libcsync_rs.a
ENGINE_CFLAGS ?= -O2 -g
ENGINE_CC = $(CC) -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror $(ENGINE_CFLAGS) -Iinclude
ENGINE_LIBS = $(ENGINE_LIBRARY) -lpthread -ldl -lm -lgcc_s -lutil -lrt

.PHONY: xfer engine-tests engine-bench
xfer: build/xfer

build/xfer: c-tests/xfer.c $(ENGINE_LIBRARY) include/csync_rs.h
	@mkdir -p $(@D)
	$(ENGINE_CC) $< $(ENGINE_LIBS) -o $@

build/fault-matrix: $(wildcard tests/engine/*.c tests/engine/*.h) $(ENGINE_LIBRARY) include/csync_rs.h
	@mkdir -p $(@D)
	$(ENGINE_CC) -Itests/engine $(filter %.c,$^) $(ENGINE_LIBS) -o $@

engine-tests:
	scripts/engine-tests

engine-bench:
	scripts/engine-bench
