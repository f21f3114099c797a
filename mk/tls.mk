# TLS with real peers.
#
#   tls-interop   every kind of key, both roles, both versions, with GnuTLS and openssl
#   tls-bench     bytes, CPU time and system calls, beside GnuTLS

.PHONY: tls-interop tls-bench

build/tls-peer: tests/tls/peer.c $(ENGINE_LIBRARY) include/csync_rs.h
	@mkdir -p $(@D)
	$(ENGINE_CC) $< $(ENGINE_LIBRARY) -lgnutls -lpthread -ldl -lm -lgcc_s -lutil -lrt -o $@

tls-interop:
	scripts/tls-interop

tls-bench:
	scripts/tls-bench

# The library with rustls-ffi's functions in it, in a directory of its own: libcsync_rs.a, rustls.h, csync_rs_rustls.h.
RUSTLS_DIR ?= build/rustls-ffi
PLAIN_DIR := $(or $(CARGO_TARGET_DIR),target)/release

# Nearly all that it is made of is what the plain library is made of, and need not be compiled twice. (The lock is
# cargo's own.)
$(RUSTLS_DIR)/target:
	mkdir -p $@.new/release
	[ ! -e $(PLAIN_DIR)/.cargo-lock ] || flock $(PLAIN_DIR)/.cargo-lock \
		cp -a $(PLAIN_DIR)/deps $(PLAIN_DIR)/build $(PLAIN_DIR)/.fingerprint $@.new/release
	mv $@.new $@

.PHONY: rustls-ffi rustls-ffi-test
rustls-ffi: $(RUSTLS_DIR)/target ## the library with the feature rustls-ffi, and its headers, in build/rustls-ffi
	$(CARGO) build --locked --release --lib --features rustls-ffi --target-dir $(RUSTLS_DIR)/target
	mkdir -p $(RUSTLS_DIR)/include
	cp include/csync_rs.h include/csync_rs_rustls.h $(RUSTLS_DIR)/include
	cp $$(ls -t $(RUSTLS_DIR)/target/release/build/rustls-ffi-*/out/include/rustls.h | head -n 1) $(RUSTLS_DIR)/include
	cp $(RUSTLS_DIR)/target/release/libcsync_rs.a $(RUSTLS_DIR)

rustls-ffi-test: rustls-ffi
	$(CC) -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -g -I$(RUSTLS_DIR)/include tests/tls/over_rustls.c \
		$(RUSTLS_DIR)/libcsync_rs.a -lpthread -ldl -lm -lgcc_s -lutil -lrt -o $(RUSTLS_DIR)/over-rustls
	$(RUSTLS_DIR)/over-rustls tests/tls
