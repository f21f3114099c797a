# What distributions take: tarballs and packages. The tests take minutes, want root and a network, and are not part of
# `make test`.

.PHONY: deb deb-tests dist dist-tests rpmlint

deb: ## Debian packages in build/deb: libcsync-rs0, libcsync-rs-dev, and csync2 with the patches
	scripts/deb

deb-tests: ## those packages in a fresh root file system: install, demo, upgrade, removal
	scripts/deb-tests

dist: ## source tarball and vendor tarball in build/dist
	scripts/dist

dist-tests: dist ## those without a network, twice
	scripts/dist-tests

rpmlint: ## the RPM spec
	rpmlint packaging/csync-rs.spec
