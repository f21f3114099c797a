# The front door. `make` builds the library, `make demo` shows it at work, `make test` tests everything.

CARGO ?= cargo
PROFILE ?= release
CARGO_FLAGS ?=
# Where cargo puts it; another place where CARGO_FLAGS has a --target of its own.
LIBRARY ?= $(or $(CARGO_TARGET_DIR),target)/$(PROFILE:dev=debug)/libcsync_rs.a

.PHONY: all library header test demo csync2 clean help

all: library

help:
	@echo 'make          build target/release/libcsync_rs.a and libcsync_rs.so'
	@echo 'make install  install it (DESTDIR, PREFIX, LIBDIR, INCLUDEDIR, MANDIR); make uninstall takes it away again'
	@echo 'make demo     synchronise a real tree between real csync2 nodes, with and without the library'
	@echo 'make test     every test; installs the packages it needs when run as root on Debian'
	@echo 'make csync2   build the original csync2 and the patched one side by side in build/csync2'
	@echo 'make bench    the delta engine by itself, and against rdiff; make syncbench: csync2 builds against each other'
	@echo 'make xfer     build/xfer, which pushes and pulls files over TCP and ssh'
	@echo 'make link-table   what an update costs over a link with a delay'
	@echo 'make tls-interop   our TLS with GnuTLS and OpenSSL; make tls-bench: beside GnuTLS; make rustls-ffi: with its functions'
	@echo 'make deb      Debian packages in build/deb; make dist: source and vendor tarballs in build/dist (deb-tests, dist-tests)'
	@echo 'make header   write include/csync_rs.h anew from the sources'

library:
	$(CARGO) build --locked --profile $(PROFILE) --lib $(CARGO_FLAGS)

header:
	UPDATE_HEADER=1 $(CARGO) test --locked --test header

test:
	scripts/test

clean:
	$(CARGO) clean
	rm -rf build

include mk/*.mk
