# The real csync2: fetched, built with and without this library, and tried.

.PHONY: csync2 demo csync2-suite system-tests interop syncbench link-table

csync2: ## csync2 side by side: build/csync2/original and build/csync2/patched
	scripts/csync2-build original patched

demo: ## three csync2 nodes synchronise a real tree over TLS, in all pairs
	scripts/demo

csync2-suite: ## csync2's own test suite, on each pair of builds
	scripts/csync2-suite

system-tests: ## what the real csync2 has to do, in all pairs
	scripts/system-tests

interop: ## TLS between every two builds, with every kind of key and both versions
	INTEROP=full scripts/system-tests TLS

syncbench: ## the original, its 16 KiB rival and ours, timed
	scripts/syncbench

link-table: ## what an update costs over a link with a delay (needs root)
	scripts/link-table
