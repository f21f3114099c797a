#!/bin/sh
# Runs the suite's programs and sums up.  run.sh ours|original|asan|valgrind DIRECTORY PROGRAM...
#   CT_JOBS=n     programs at a time (2: much of what they do is waiting)
#   CT_ONLY=text  only the cases whose name holds the text
#   CT_VERBOSE=1  everything that the cases print   CT_TIMES=1  seconds of each program
kind=$1 dir=$2
shift 2
logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
[ -n "$CT_ONLY" ] || unset CT_ONLY

jobs=${CT_JOBS:-2} check=
case $kind in
asan)
	export ASAN_OPTIONS=exitcode=99:detect_leaks=1:allocator_may_return_null=1:handle_abort=0
	export UBSAN_OPTIONS=halt_on_error=1:exitcode=99:print_stacktrace=1
	;;
valgrind)
	export CT_VALGRIND=1
	check="valgrind -q --suppressions=valgrind.supp --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite"
	;;
esac

export logs dir check
printf '%s\n' "$@" | xargs -P "$jobs" -I{} sh -c '
	start=$(date +%s)
	CT_RESULTS=$logs/{}.result $check "$dir/{}" >"$logs/{}.log" 2>&1
	echo $? >"$logs/{}.status"
	echo "{}: $(($(date +%s) - start)) s" >"$logs/{}.time"'

status=0 died=0
for t; do
	if [ "$(cat "$logs/$t.status" 2>/dev/null)" = 0 ]; then
		if [ "$CT_VERBOSE" ]; then cat "$logs/$t.log"; else sed -n "s/^count: /$t: /p" "$logs/$t.log"; fi
	else
		status=1
		grep -v -e '^\[ RUN  *\]' -e '^\[  *OK \]' "$logs/$t.log"
	fi
	[ "$CT_TIMES" ] && cat "$logs/$t.time"
	[ -s "$logs/$t.result" ] || { echo "$t: died"; died=$((died + 1)); status=1; }
done

cat "$logs"/*.result 2>/dev/null | awk -v kind="$kind" -v died="$died" '
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
		if (!("CT_ONLY" in ENVIRON))
			printf "rows of the fault list with a case: %d of %d%s\n", have, all, missing ? ", without:" missing : ""
		if (kind == "original")
			printf "A/B: %d same, %d faults of the original shown, %d not shown (the table says why)\n", same, shown, not
		printf "c-tests (%s): %d passed, %d failed", kind, p, f + died
		if (s) printf ", %d skipped", s
		print ""
	}'
exit $status
