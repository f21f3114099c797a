#!/bin/sh
# Runs the suite's programs and sums up.  run.sh ours|original|asan|valgrind DIRECTORY PROGRAM...
kind=$1 dir=$2
shift 2
here=$(dirname "$0")
CT_RESULTS=$(mktemp) || exit 1
log=$(mktemp) || exit 1
trap 'rm -f "$CT_RESULTS" "$log"' EXIT
export CT_RESULTS
[ -n "$CT_ONLY" ] || unset CT_ONLY

check=
case $kind in
asan)
	export ASAN_OPTIONS=exitcode=99:detect_leaks=1:allocator_may_return_null=1:handle_abort=0
	export UBSAN_OPTIONS=halt_on_error=1:exitcode=99:print_stacktrace=1
	;;
valgrind)
	export CT_VALGRIND=1
	check="valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --child-silent-after-fork=no --track-fds=no"
	;;
esac

status=0 died=0
for t; do
	if $check "$dir/$t" >"$log" 2>&1; then
		[ "$CT_VERBOSE" ] && cat "$log"
	else
		status=1
		grep -v -e '^\[ RUN  *\]' -e '^\[  *OK \]' "$log"
	fi
	[ "$(awk -v t="$t" '$1 == t' "$CT_RESULTS")" ] || { echo "$t: died"; died=$((died + 1)); status=1; }
done

awk -v kind="$kind" -v died="$died" '
	{ p += $2; f += $3; s += $4; same += $5; shown += $6; not += $7
	  for (i = 8; i <= NF; i++) if (match($i, /^[swth][0-9]+_/)) rows[toupper(substr($i, 1, RLENGTH - 1))]++ }
	END {
		n = split("S16 W14 T15 H3", last, " ")
		for (i = 1; i <= n; i++) {
			c = substr(last[i], 1, 1)
			for (j = 1; j <= substr(last[i], 2) + 0; j++) {
				all++
				if (c j in rows) have++
				else missing = missing " " c j
			}
		}
		if (!ENVIRON["CT_ONLY"])
			printf "rows of the fault list with a case: %d of %d%s\n", have, all, missing ? ", without:" missing : ""
		if (kind == "original")
			printf "A/B: %d same, %d faults of the original shown, %d not shown (the table says why)\n", same, shown, not
		printf "c-tests (%s): %d passed, %d failed", kind, p, f + died
		if (s) printf ", %d skipped", s
		print ""
	}' "$CT_RESULTS"
exit $status
