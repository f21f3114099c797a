/*
 * csync-rs: the transfer functions of csync2's rsync.c, as a library.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Made from the comments in src/ffi by cbindgen: `make header`. Do not edit.
 */

#ifndef CSYNC_RS_H
#define CSYNC_RS_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/*
 The largest piece that is handed to `conn_write`, in bytes: the most that one TLS record carries.
 */
#define CSYNC_CHUNK 16384

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Announces the content of a stream to the peer and sends it: `octet-stream N`, then N bytes, in writes of at
 most CSYNC_CHUNK bytes.

 @param in an open stream, sent from its first byte to its last wherever its position is; a stream that
   cannot seek, and NULL, are answered with `ERROR`. Its position is at its end afterwards.

 Returns: nothing.

 Errors: what goes wrong is logged at level 0. A lost connection shows at the caller's next read. Where the
 stream fails after its length was announced, the payload cannot be completed: the connection is closed
 (`conn_close`) and `csync_fatal` called.

 # Safety
 `in` is NULL or an open stream that no other thread uses during the call.
 */
void csync_send_file(FILE *in);

/*
 Receives one payload from the peer and writes it to a stream, which is flushed and rewound.

 @param out an open stream; the payload is written at its position.

 Returns: 0, or -1 with errno set.

 Errors: EIO where the peer reports an error or sends something else than a header; ECONNRESET or the
 connection's own errno where it is lost; EINVAL for NULL; else what writing said (ENOSPC, EFBIG, ...). The
 payload has been read to its end after every error but a lost connection, so that the next command finds both
 ends in step.

 # Safety
 `out` is NULL or an open stream that no other thread uses during the call.
 */
int csync_recv_file(FILE *out);

/*
 Makes the signature of a file: MD4, rollsum, blocks of 2048 bytes, sums of 16, byte for byte that of
 `rdiff signature -H md4 -R rollsum -b 2048 -S 16`.

 @param filename the file, with csync2's `%prefix%`; not followed where it is a symbolic link.
 @param sig_file_out set to a stream over an unnamed file with the signature, positioned at its end, for the
   caller to close; to NULL where the file does not exist, and on errors.

 Returns: 0, or -1 with errno set.

 Errors: ELOOP for a symbolic link, EISDIR for a directory, EINVAL for another file that is not regular and for a
 NULL `sig_file_out`, else what opening, reading, or writing in the temporary directory said.

 # Safety
 `filename` is NULL or a string that ends in NUL; `sig_file_out` is NULL or valid for a write.
 */
int csync_rs_sigfile(const char *filename,
                     FILE **sig_file_out);

/*
 Reads the peer's signature and compares the local file with it as it arrives. The peer's own block length, sum
 length and kinds of sums are used.

 @param filename the local file, with csync2's `%prefix%`; not followed where it is a symbolic link.
 @param isreg 0 where the file is not regular: it then equals an empty payload.

 Returns: 0 for equal, 1 for different, -1 with errno set.

 Errors: only a lost connection is -1 (ECONNRESET or the connection's own errno). A local file that cannot be
 read, `octet-stream -1`, `ERROR` and any other line in place of the header are logged and return 1: a status line
 follows, and only a caller that goes on to read it stays in step.

 # Safety
 `filename` is NULL (as an empty name) or a string that ends in NUL.
 */
int csync_rs_check(const char *filename,
                   int isreg);

/*
 Sends the signature of a file to the peer, as one payload.

 @param filename the file, with csync2's `%prefix%`; not followed where it is a symbolic link. For one that does
   not exist the signature of nothing is sent.

 Returns: nothing.

 Errors: logged at level 0. Where the file cannot be read, the peer gets the signature of an empty file in its
 place (no failure word is understood here by every peer), and the csync_rs_patch() of the same file that
 follows returns -1 with the errno. A lost connection shows at the caller's next read.

 # Safety
 `filename` is NULL (as an empty name) or a string that ends in NUL.
 */
void csync_rs_sig(const char *filename);

/*
 Reads the peer's signature and sends the delta from the peer's version of a file to ours.

 @param filename the local file, with csync2's `%prefix%`; not followed where it is a symbolic link.

 Returns: 0, or -1 with errno set.

 Errors: after every error but a lost connection the peer's signature has been read and exactly one thing was
 sent, a delta or `ERROR`; the peer answers either with a status line. ENOENT, EACCES, ELOOP, EISDIR, EINVAL, ...:
 the file cannot be opened as a regular file. EIO: it cannot be read, or the peer reports an error. EBADMSG: the
 peer's signature breaks the format. ENOMEM: its index does not fit the memory. EAGAIN: the file changed while it
 was read; what was read has been sent (or, where the file became shorter, a delta that the peer refuses), and the
 file must be tried again. ECONNRESET, or the connection's own errno: it is lost.

 # Safety
 `filename` is NULL (as an empty name) or a string that ends in NUL.
 */
int csync_rs_delta(const char *filename);

/*
 Reads the peer's delta and replaces a file by what the delta makes of it: the new file is complete, and on the
 disk where csync_rs_fsync() says so, before it takes the old one's name. It gets the old one's owner, mode, ACL,
 extended attributes and security label, as far as they can be set; a file that did not exist gets mode 0600.

 @param filename the local file, with csync2's `%prefix%`; not followed where it is a symbolic link.

 Returns: 0, or -1 with errno set.

 Errors: after every error the old file is as it was and nothing of the new one is left; after every error but a
 lost connection the whole delta has been read. EAGAIN: the file changed, appeared or vanished since its signature
 was sent. EBADMSG: the delta is corrupt. EIO: the peer reports an error. ENOENT: there is no such directory.
 EISDIR, ELOOP, EINVAL, EACCES, ...: the file to be patched cannot be read as a regular file. ENOSPC, EDQUOT,
 EFBIG, ...: what writing said. ECONNRESET, or the connection's own errno: it is lost.

 # Safety
 `filename` is NULL (as an empty name) or a string that ends in NUL.
 */
int csync_rs_patch(const char *filename);

/*
 Says whether csync_rs_patch() brings a new file, and its name, to the disk before it returns, so that a power
 failure cannot leave an empty or short file. Off by default: it costs a disk's write latency for each file.

 @param enable 0 for no, anything else for yes; holds for the whole process.

 Returns: the setting before, 0 or 1. Errors: none. Safety: may be called from any thread.
 */
int csync_rs_fsync(int enable);

/*
 Makes every missing directory above the last component of a path.

 @param path a path to a file that is to be created; with a slash at its end, all of it is made.
 @param mode the mode of new directories (less the umask); 0 stands for 0700.

 Returns: 0, or -1 with errno set.

 Errors: EINVAL for NULL; ENOTDIR where a parent exists and is not a directory; ENAMETOOLONG; else what mkdir said.
 Directories that were made before the error stay.

 # Safety
 `path` is NULL or a string that ends in NUL.
 */
int mkpath(const char *path,
           mode_t mode);

/*
 Splits a path at its last slash.

 | filepath | dirname | basename |
 | --- | --- | --- |
 | `/` | `/` | |
 | `/foo` | `/` | `foo` |
 | `/some/path/` | `/some/path` | |
 | `foo` | | `foo` |

 @param dirname NULL, or room for the part before the slash: strlen(filepath) + 1 bytes are enough for any path.
 @param basename NULL, or room for the part behind it: likewise.
 @param filepath the path; NULL is taken as the empty path.

 Returns: nothing. Errors: none.

 # Safety
 `filepath` is NULL or a string that ends in NUL; `dirname` and `basename` are NULL or valid for writes of the
 lengths said; none of the three overlap.
 */
void split_dirname_basename(char *dirname,
                            char *basename,
                            const char *filepath);

/*
 Makes a new file with a name of its own, as mkstemp, and with a mode of the caller's. The descriptor is closed
 on exec.

 @param template ends in `XXXXXX`, which is replaced.
 @param perms the file's mode, whatever the umask; the owner's write bit is added.

 Returns: a descriptor open for reading and writing, or -1 with errno set and no file made.

 Errors: EINVAL for NULL and for a template that does not end in `XXXXXX`; else what mkstemp or fchmod said.

 # Safety
 `template` is NULL or a string that ends in NUL and may be written to.
 */
int do_mkstemp(char *template_,
               mode_t perms);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CSYNC_RS_H */
