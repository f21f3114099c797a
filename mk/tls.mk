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
