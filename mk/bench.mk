# How fast the delta engine is.

.PHONY: bench bench-engine bench-rdiff

bench: bench-engine bench-rdiff tls-bench ## the delta engine by itself and against rdiff, TLS beside GnuTLS

bench-engine:
	$(CARGO) bench --locked --bench rdiff

bench-rdiff:
	scripts/bench-rdiff
