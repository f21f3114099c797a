# Installing, as GNU's standards and distributions have it. DESTDIR, PREFIX, LIBDIR, INCLUDEDIR, MANDIR, DOCDIR and
# PKGCONFIGDIR say where to. RUSTFLAGS, CARGO_FLAGS, CFLAGS and PROFILE are the packager's: nothing here sets them.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/csync-rs
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
STAGED = build/install

.PHONY: install uninstall $(STAGED)/csync_rs.pc

# One object that shows the interface and nothing else: see scripts/merge-archive.
$(STAGED)/libcsync_rs.a: $(LIBRARY) scripts/merge-archive include/csync_rs.sym
	@mkdir -p $(@D)
	scripts/merge-archive $(LIBRARY) include/csync_rs.sym $@

$(STAGED)/csync_rs.pc: packaging/csync_rs.pc.in
	@mkdir -p $(@D)
	@sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@LIBDIR@,$(LIBDIR:$(PREFIX)/%=$${prefix}/%),' \
		-e 's,@INCLUDEDIR@,$(INCLUDEDIR:$(PREFIX)/%=$${prefix}/%),' -e 's,@VERSION@,$(VERSION),' $< >$@

INSTALL = DESTDIR='$(DESTDIR)' LIBDIR='$(LIBDIR)' INCLUDEDIR='$(INCLUDEDIR)' MANDIR='$(MANDIR)' DOCDIR='$(DOCDIR)' \
	PKGCONFIGDIR='$(PKGCONFIGDIR)' VERSION='$(VERSION)' SHARED='$(LIBRARY:.a=.so)' ARCHIVE='$(STAGED)/libcsync_rs.a' \
	PC='$(STAGED)/csync_rs.pc' scripts/install

install: library ## header, libraries, csync_rs.pc, man pages and licences
	@$(MAKE) --no-print-directory $(STAGED)/libcsync_rs.a $(STAGED)/csync_rs.pc
	$(INSTALL) install

uninstall: ## what install has put there, and nothing else
	$(INSTALL) uninstall
