# shellcheck shell=bash disable=SC2034
# Helpers shared by the shell scripts in this directory; sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
csync2_version=2.0-42-g83b3644
csync2_build=$root/build/csync2
rust_minimum=1.85

say() { printf '%s\n' "$*"; }

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# version_at_least WANTED FOUND
version_at_least() { [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

# Only one script at a time works below build/csync2.
lock_build() {
	mkdir -p "$csync2_build"
	exec 9>"$csync2_build/.lock"
	flock -w 900 9 || die "another run holds $csync2_build/.lock"
}

# Each requirement is KIND:NAME=DEBIAN-PACKAGE; KIND is cmd (a program), pc (a pkg-config
# module) or hdr (a C header). They are looked for themselves, not as packages: a machine
# may have them from elsewhere, and need not be a Debian.
requirements_fetch=(cmd:gzip=gzip cmd:tar=tar cmd:sha256sum=coreutils cmd:flock=util-linux)
requirements_build=(cmd:gcc=gcc cmd:make=make cmd:pkg-config=pkg-config cmd:patch=patch
	cmd:autoreconf=autoconf cmd:automake=automake cmd:bison=bison cmd:flex=flex
	hdr:stdio.h=libc6-dev pc:gnutls=libgnutls28-dev pc:sqlite3=libsqlite3-dev hdr:librsync.h=librsync-dev)
requirements_nodes=(cmd:python3=python3 cmd:openssl=openssl)
requirements_suite=(cmd:ip=iproute2 cmd:ss=iproute2 cmd:nc=netcat-openbsd cmd:perl=perl
	cmd:diff=diffutils cmd:unshare=util-linux)
requirements_system=(cmd:strace=strace)

requirement_met() {
	local kind=${1%%:*} name=${1#*:}
	name=${name%%=*}
	case $kind in
	cmd) have "$name" ;;
	pc) have pkg-config && pkg-config --exists "$name" ;;
	hdr) have gcc && printf '#include <stddef.h>\n#include <stdio.h>\n#include <%s>\n' "$name" | gcc -E -o /dev/null - 2>/dev/null ;;
	esac
}

requirements_missing() {
	local requirement
	for requirement; do
		requirement_met "$requirement" || printf '%s\n' "$requirement"
	done
}

# Install what is missing (as root, where there is apt-get), or name it and stop.
require() {
	local missing packages
	mapfile -t missing < <(requirements_missing "$@")
	((${#missing[@]})) || return 0
	mapfile -t packages < <(printf '%s\n' "${missing[@]#*=}" | sort -u)
	if ! have apt-get; then
		die "missing: ${missing[*]%%=*} (Debian's packages for them: ${packages[*]})"
	elif ((EUID != 0)); then
		die "missing; please install: apt-get install ${packages[*]}"
	fi
	say "Installing ${packages[*]} ..."
	apt_install "${packages[@]}"
	mapfile -t missing < <(requirements_missing "$@")
	((${#missing[@]} == 0)) || die "still missing after the installation: ${missing[*]%%=*}"
}

apt_install() {
	local log
	log=$(mktemp)
	if ! { DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" ||
		{ timeout 300 apt-get update &&
			DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"; }; } >"$log" 2>&1 </dev/null; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		die "apt-get install $* failed"
	fi
	rm -f "$log"
}

# The first Debian archive among apt's sources, with its keyring.
# apt itself reads the configuration, so both styles of sources.list serve.
debian_source() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(REPO_URI) $(SIGNED_BY)' 'Created-By: Packages' 2>/dev/null |
		grep -E '^[^ ]*/debian/? ' | head -n 1 || true
}

cargo_version() { cargo --version 2>/dev/null | cut -d' ' -f2; }

cargo_good() { have cargo && version_at_least "$rust_minimum" "$(cargo_version)"; }

# cargo is new enough, or is made so from Debian's package, or the way to get it is told.
require_cargo() {
	local candidate
	[[ ! -d $HOME/.cargo/bin ]] || PATH=$PATH:$HOME/.cargo/bin
	cargo_good && return 0
	if ((EUID == 0)) && have apt-get; then
		[[ -n $(find /var/lib/apt/lists -name '*_Packages*' -print -quit 2>/dev/null) ]] ||
			timeout 300 apt-get update >/dev/null 2>&1 || true
		candidate=$(apt-cache policy cargo 2>/dev/null | sed -n 's/^ *Candidate: *//p')
		if [[ $candidate == [0-9]* ]] && version_at_least "$rust_minimum" "$candidate"; then
			say "Installing cargo ..."
			apt_install cargo ca-certificates
			hash -r
			cargo_good && return 0
		fi
	fi
	die "cargo $rust_minimum or newer is needed (found: $(cargo_version || true)).
Debian 13 has it: apt-get install cargo
elsewhere:        install it with rustup"
}
