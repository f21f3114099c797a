/* The configuration under which csync2's rsync.c is compiled for the comparison: no TLS, nothing else asked for. */
