# How fast the delta engine is.

.PHONY: bench bench-engine bench-rdiff

bench: bench-engine bench-rdiff ## the delta engine by itself, and against librsync's rdiff

bench-engine:
	$(CARGO) bench --locked --bench rdiff

bench-rdiff:
	scripts/bench-rdiff
