# The C suite (c-tests/), for the front door. Each target ends with its own line "c-tests (...): N passed, N failed".
#
#   c-tests-ours       the library: static archive, fake host
#   c-tests-asan       the same under AddressSanitizer and UBSan
#   c-tests-valgrind   the same under valgrind
#   c-tests-links      static, shared and -flto links, without a host, the header in C99, C11, C23 and C++, and that
#                      header, exported symbols, include/csync_rs.sym and tests name the same functions
#   chunk-matrix       every limit, size and verb over every kind of connection (minutes, 12 GB)
#   c-tests-original   csync2's original rsync.c: each case does there what its table says (needs CSYNC2_SRC)

CSYNC2_SRC ?= build/csync2/src
C_TESTS_LIB ?= target/release/libcsync_rs.a
C_TESTS_MAKE = $(MAKE) --no-print-directory -C c-tests LIB=$(abspath $(C_TESTS_LIB)) INC=$(abspath include) \
	CSYNC2_SRC=$(abspath $(CSYNC2_SRC)) BUILD=$(abspath build/c-tests)

.PHONY: chunk-matrix c-tests c-tests-ours c-tests-asan c-tests-valgrind c-tests-links c-tests-original
c-tests: c-tests-ours c-tests-asan c-tests-valgrind c-tests-links c-tests-original

chunk-matrix:
	+@CHUNK_MATRIX=full $(C_TESTS_MAKE) chunk-matrix
c-tests-ours:
	+@$(C_TESTS_MAKE) ours
c-tests-asan:
	+@$(C_TESTS_MAKE) asan
c-tests-valgrind:
	+@$(C_TESTS_MAKE) valgrind
c-tests-links:
	+@$(C_TESTS_MAKE) links
c-tests-original:
	+@$(C_TESTS_MAKE) original
