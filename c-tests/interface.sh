#!/bin/sh
# The interface: the functions of csync_rs.h, the symbols of libcsync_rs.so, the list include/csync_rs.sym, and the
# functions that a test program calls, are the same.  interface.sh HEADER LIST SHARED_LIBRARY TEST_SOURCE...
header=$1 list=$2 shared=$3
shift 3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
LC_ALL=C
export LC_ALL

# Comments away, one declaration a line; what is followed by a parenthesis outside of a structure is a function.
tr '\n' ' ' <"$header" | sed 's,/\*[^*]*\**\([^/*][^*]*\*\**\)*/, ,g' >"$work/text"
sed 's/typedef [a-z]* [a-z_]* {[^}]*} [a-z_]*;//g; s/;/\n/g' "$work/text" |
	sed -n 's/^.*[ *]\([a-z_][a-z_0-9]*\)(.*$/\1/p' | sort -u >"$work/header"
nm -D --defined-only "$shared" | awk '$2 == "T" { print $3 }' | sort -u >"$work/exported"
grep -v -e '^#' -e '^$' "$list" | sort >"$work/list"
cat "$@" | grep -o '[a-z_][a-z_0-9]*(' | tr -d '(' | sort -u | comm -12 - "$work/list" >"$work/called"

status=0
same() {
	if ! cmp -s "$work/$1" "$work/$2"; then
		status=1
		echo "$3 (<) and $4 (>) are not the same:"
		diff "$work/$1" "$work/$2" | grep '^[<>]'
	fi
}
same header list "$header" "$list"
same exported list "$shared" "$list"
same called list "functions with a test" "$list"

# Each function of the engine's interface and of TLS has a program of its own name, and each program is about one.
for f in $(grep -e '^csync_engine_' -e '^csync_tls_' -e '^csync_host_' -e '^csync_status_' "$work/list"); do
	program=test_${f#csync_}.c
	case " $* " in *" $program "*) ;; *) status=1; echo "$f: no $program" ;; esac
done
[ $status = 0 ] && echo "interface: $(wc -l <"$work/list") functions in the header, exported, listed and tested"
exit $status
