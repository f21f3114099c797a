/*
 * csync-rs: the transfer functions of csync2's rsync.c, as a library.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Made from the comments in src/ffi by cbindgen: `make header`. Do not edit.
 */

#ifndef CSYNC_RS_H
#define CSYNC_RS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/*
 The largest piece that is handed to `conn_write`, in bytes: the most that one TLS record carries.
 */
#define CSYNC_CHUNK 16384

/*
 What a call came to. The numbers are fixed.
 */
typedef enum csync_status {
  /*
   Done.
   */
  CSYNC_OK = 0,
  /*
   An argument is not allowed.
   */
  CSYNC_E_ARGUMENT = 1,
  /*
   A local file cannot be read, made or replaced.
   */
  CSYNC_E_FILE = 2,
  /*
   A local file changed meanwhile: try again.
   */
  CSYNC_E_CHANGED = 3,
  /*
   The peer reports an error.
   */
  CSYNC_E_PEER = 4,
  /*
   The peer sent something that breaks the format.
   */
  CSYNC_E_FORMAT = 5,
  /*
   The connection is lost.
   */
  CSYNC_E_CONNECTION = 6,
  /*
   The peer was silent for too long.
   */
  CSYNC_E_TIMEOUT = 7,
  /*
   csync_engine_cancel() was called, or the progress function said so.
   */
  CSYNC_E_CANCELLED = 8,
  /*
   There is not enough memory.
   */
  CSYNC_E_MEMORY = 9,
  /*
   The transport cannot carry a single byte.
   */
  CSYNC_E_PAYLOAD = 10,
  /*
   The engine cannot be used: an earlier call lost the connection or left it in the middle of a payload, or another
   call is under way on it.
   */
  CSYNC_E_STATE = 11,
  /*
   A fault of this library.
   */
  CSYNC_E_INTERNAL = 12,
  /*
   The peer of a TLS session has shown no certificate, or has not proved that the key of the one it shows is its own.
   */
  CSYNC_E_IDENTITY = 13,
} csync_status;

/*
 Which call a report of progress belongs to. The numbers are fixed.
 */
typedef enum csync_verb {
  /*
   csync_engine_send()
   */
  CSYNC_SEND = 1,
  /*
   csync_engine_receive()
   */
  CSYNC_RECEIVE = 2,
  /*
   csync_engine_signature()
   */
  CSYNC_SIGNATURE = 3,
  /*
   csync_engine_check()
   */
  CSYNC_CHECK = 4,
  /*
   csync_engine_delta()
   */
  CSYNC_DELTA = 5,
  /*
   csync_engine_patch()
   */
  CSYNC_PATCH = 6,
  /*
   csync_engine_push()
   */
  CSYNC_PUSH = 7,
  /*
   csync_engine_pull()
   */
  CSYNC_PULL = 8,
} csync_verb;

/*
 An engine: a connection, and what its calls need. Two engines know nothing of each other and may be used from two
 threads; one engine serves one call at a time.
 */
typedef struct csync_engine csync_engine;

/*
 Requests that are sent before the answers to earlier ones are there, and whose answer is due next. A peer that
 handles one request after the other needs to know nothing of it.

 Nothing here waits. Requests are kept, and leave by csync_rs_pipeline_send(), which is to be called whenever an
 answer is about to be waited for: a caller that waits for input while output is left, and for either, never waits for
 a peer that waits for it, however small the buffers between the two are.
 */
typedef struct csync_pipeline csync_pipeline;

/*
 A TLS session over two descriptors. Two sessions know nothing of each other; one serves one call at a time.

 Trust: both sides show a certificate, and prove by a signature over this very handshake that they have its key. That
 is all that is checked: neither issuer nor names nor dates are looked at. Whether it is the right certificate is for
 the caller to say, who compares csync_tls_peer_certificate() with the one that is known, byte by byte, ahead of the
 first read or write.
 */
typedef struct csync_tls csync_tls;

/*
 What sessions have in common: a certificate with its key, and options. May be used by several threads at a time once
 it is loaded.
 */
typedef struct csync_tls_config csync_tls_config;

/*
 What csync_host_register() takes: what csync2 gives to `rsync.c` by its symbols. Members that are NULL are not
 used. The functions are called from the thread that calls into this library.
 */
typedef struct csync_host {
  /*
   sizeof(struct csync_host): members behind it are taken as NULL and 0.
   */
  size_t size;
  /*
   Passed to each function.
   */
  void *userdata;
  /*
   Reads at most `count` bytes of the connection: their number, 0 at the end, -1 with errno.
   */
  ssize_t (*read)(void *userdata, void *buffer, size_t count);
  /*
   Writes at most `count` (at most CSYNC_CHUNK) bytes: their number, or -1 with errno and nothing written.
   */
  ssize_t (*write)(void *userdata, const void *buffer, size_t count);
  /*
   Closes the connection.
   */
  void (*close)(void *userdata);
  /*
   Takes a message without an end of line; level 0 is always shown, 3 is the most detailed.
   */
  void (*log)(void *userdata, int level, const char *message);
  /*
   Ends the program, where csync_send_file() cannot complete what it has announced. The connection is closed.
   */
  void (*fatal)(void *userdata, const char *message);
  /*
   The local path of a file name; valid until the next call.
   */
  const char *(*local_path)(void *userdata, const char *name);
  /*
   Where new files are staged; beside their targets where it is NULL or cannot be used. Copied by csync_host_register().
   */
  const char *temp_dir;
  /*
   Not 0: a replaced file's owner is not carried over.
   */
  unsigned int ignore_uid;
  /*
   Not 0: a replaced file's group is not carried over.
   */
  unsigned int ignore_gid;
} csync_host;

/*
 How an engine works. All zeroes, but for the size, is a good choice; so is NULL in its place.
 */
typedef struct csync_options {
  /*
   sizeof(struct csync_options): members behind it are taken as 0.
   */
  size_t size;
  /*
   The largest write, in bytes, 1 or more; never above what the transport allows. 0: what the transport allows, and
   131072 where that is no limit.
   */
  size_t chunk;
  /*
   How many literal bytes of a delta are held in memory; more than that are read again when they are sent.
   0: 67108864.
   */
  size_t literal_budget;
  /*
   Not 0: a new file, and its name, are on the disk when csync_engine_patch() or csync_engine_pull() returns.
   */
  unsigned int fsync;
  /*
   Not 0: a TCP connection is probed while it is silent. Only for descriptors.
   */
  unsigned int keepalive;
  /*
   After how many milliseconds in which nothing moves a call ends with CSYNC_E_TIMEOUT. 0: after 600000;
   UINT_MAX: never. The peer is as silent while it makes a file of old parts, so this is to be longer than its disk takes
   for the largest file. Needs a transport that does not wait in its own functions. It holds as well for a descriptor that
   takes no content from csync_engine_receive(), which then returns CSYNC_E_FILE.
   */
  unsigned int silence_limit;
  /*
   Not 0: a replaced file's owner and group are not carried over.
   */
  unsigned int ignore_owner;
  /*
   Where new files are staged; NULL: beside their targets, as well where the directory cannot be used, which a message
   of level 1 says. Copied.
   */
  const char *temp_dir;
  /*
   Passed to the two functions below.
   */
  void *userdata;
  /*
   NULL, or told how far a call has come, ten times a second at most, also while nothing moves, and once at its end:
   the bytes that went over the connection, and the bytes announced so far, either way (0: not known yet). Returns 0
   to go on, anything else to cancel (at the end there is nothing left to cancel).
   */
  int (*progress)(void *userdata, enum csync_verb verb, uint64_t done, uint64_t announced);
  /*
   NULL, or takes messages without an end of line; level 0 is worth showing, 3 is the most detailed.
   */
  void (*log)(void *userdata, int level, const char *message);
  /*
   How many threads hash a file of 16 MiB or more for its signature or a check, the calling one counted: 1 to 64,
   more counts as 64. 1: no other thread is ever started. 0: as many as the machine has for this process, 4 at most.
   They live within the call, take no signals and call none of the program's functions; the bytes sent are the same
   whatever the number. Where the system has no more threads, the calling one does it all.
   */
  size_t threads;
} csync_options;

/*
 A connection made of functions: what csync_engine_over_transport() takes. The functions are called from the thread
 that calls a verb, one at a time.
 */
typedef struct csync_transport {
  /*
   sizeof(struct csync_transport): members behind it are taken as NULL.
   */
  size_t size;
  /*
   Passed to each function.
   */
  void *userdata;
  /*
   Reads at most `count` bytes: their number, 0 at the end of the stream, -1 with errno (EINTR and EAGAIN: asked
   again). Bytes are a stream: what is left of a packet is handed out by the next call.
   */
  ssize_t (*read)(void *userdata, void *buffer, size_t count);
  /*
   Writes at most `count` bytes, never more than max_payload() said: their number, which may be less, or -1 with
   errno and nothing written (EINTR and EAGAIN: asked again with the same bytes, or fewer of them where max_payload()
   has fallen). A transport that says EAGAIN must have a read that does not wait: it is asked for input while output
   is refused.
   */
  ssize_t (*write)(void *userdata, const void *buffer, size_t count);
  /*
   NULL, or sends what write has held back: 0, or -1 with errno (EINTR and EAGAIN: asked again, as write). Called
   whenever the peer's answer is waited for next, and at the end of each payload.
   */
  int (*flush)(void *userdata);
  /*
   NULL, or the largest write that is carried in one piece, in bytes: a TLS record's content, a packet's payload
   without its headers. SIZE_MAX: no limit. 0: nothing can be carried, which ends the verb with
   CSYNC_E_PAYLOAD. Asked ahead of each write, so that it may change.
   */
  size_t (*max_payload)(void *userdata);
  /*
   NULL, or waits until a read (`for_write` 0) or a write may succeed, `milliseconds` at most, after an EAGAIN.
   Without it the library sleeps, a little longer each time, 100 ms at most.
   */
  void (*wait)(void *userdata, int for_write, unsigned int milliseconds);
} csync_transport;

/*
 How TLS sessions work. All zeroes, but for the size, is a good choice; so is NULL in its place.
 */
typedef struct csync_tls_options {
  /*
   sizeof(struct csync_tls_options): members behind it are taken as 0.
   */
  size_t size;
  /*
   0: TLS 1.3 where the peer knows it, and 1.2 otherwise. 12 or 13: TLS 1.2, or 1.3, and nothing else.
   */
  unsigned int version;
  /*
   How many milliseconds a handshake may take, all of it. 0: 60000; UINT_MAX: no limit.
   */
  unsigned int handshake_limit;
  /*
   After how many milliseconds in which nothing moves csync_tls_read(), csync_tls_write() and csync_tls_flush()
   give up. 0: 600000; UINT_MAX: never. An engine over the session has a limit of its own.
   */
  unsigned int silence_limit;
  /*
   Passed to the function below.
   */
  void *userdata;
  /*
   NULL, or takes messages without an end of line; level 0 is worth showing, 3 is the most detailed. Called by the
   functions that take the configuration, or a session made of it, on the thread that calls them.
   */
  void (*log)(void *userdata, int level, const char *message);
} csync_tls_options;

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

 Here and in csync_rs_sig() and csync_rs_check(), a file of 16 MiB or more is hashed by as many threads as the machine
 has for this process (its affinity and its cgroup counted), 4 at most. They live within the call, take no signals and
 call none of the host's functions; where the system has none, the calling one does it all.

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

/*
 Makes an empty pipeline.

 @param files how many files may be under way at a time, 1 or more: requests that hold a place.
 @param bytes how many bytes of requests and answers may be under way when another file is begun.

 Returns: the pipeline, for csync_rs_pipeline_free(), or NULL with errno set.

 Errors: EINVAL where `files` is 0. Safety: may be called from any thread.
 */
struct csync_pipeline *csync_rs_pipeline_new(size_t files, size_t bytes);

/*
 Frees a pipeline. What has not left is not sent.

 @param pipeline NULL is allowed.

 Returns: nothing. Errors: none.

 # Safety
 `pipeline` is NULL or one that is not freed yet.
 */
void csync_rs_pipeline_free(struct csync_pipeline *pipeline);

/*
 Says whether another file may be begun.

 @param pipeline the pipeline.
 @param bytes the length of its first request and, estimated, of the answer to it.

 Returns: 1 or 0. There always is room where no answer is due. 0 for NULL. Errors: none.

 # Safety
 `pipeline` is NULL or one that is not freed yet and used by no other thread meanwhile.
 */
int csync_rs_pipeline_has_room(const struct csync_pipeline *pipeline, size_t bytes);

/*
 Takes a request, to be sent behind all others.

 @param pipeline the pipeline.
 @param tag says whose request it is; csync_rs_pipeline_due() returns it. Not NULL, and not looked at.
 @param request one or more lines, with their ends, that are answered together; copied.
 @param answer the length of the answer in bytes, estimated.
 @param holds_place 0 where nothing more will be asked for this file: it makes room for another one.

 Returns: 0, or -1 with errno set and nothing taken.

 Errors: EINVAL for a NULL `pipeline`, `tag` or `request`; ENOMEM.

 # Safety
 As csync_rs_pipeline_has_room(); `request` is NULL or a string that ends in NUL.
 */
int csync_rs_pipeline_ask(struct csync_pipeline *pipeline,
                          void *tag,
                          const char *request,
                          size_t answer,
                          int holds_place);

/*
 Takes a request that announces the delta of a file (csync2's `PATCH`), and that delta right behind it, without having
 seen the peer's signature: literal bytes alone, right whatever the peer has. A daemon that refuses the request reads
 the delta as lines; each of them begins with a byte by which no command begins, whatever is in the file, and the
 first line behind it is lost. So after a refusal nothing is known of what was sent behind it, and the connection is
 to be ended: by an empty line, `BYE`, and reading to the end. Holds a place.

 @param pipeline the pipeline.
 @param tag as csync_rs_pipeline_ask().
 @param request the line, with its end; copied.
 @param filename the local file, with csync2's `%prefix%`; not followed where it is a symbolic link.
 @param answer as csync_rs_pipeline_ask(); the signature that comes with it is counted.

 Returns: 1; 0 where nothing was taken because the file cannot go this way, and csync_rs_delta() is to be used: one
 of more than 16384 bytes, with a line of more than about 3900 bytes, that changes meanwhile, that cannot be read or
 is no regular file; -1 with errno set and nothing taken.

 Errors: as csync_rs_pipeline_ask().

 # Safety
 As csync_rs_pipeline_ask(); `filename` is NULL (as an empty name) or a string that ends in NUL.
 */
int csync_rs_pipeline_patch(struct csync_pipeline *pipeline,
                            void *tag,
                            const char *request,
                            const char *filename,
                            size_t answer);

/*
 Says whose answer comes next.

 @param pipeline the pipeline.

 Returns: the tag of the oldest request that csync_rs_pipeline_answered() was not called for; NULL where there is none
 and for NULL. Errors: none.

 # Safety
 As csync_rs_pipeline_has_room().
 */
void *csync_rs_pipeline_due(const struct csync_pipeline *pipeline);

/*
 Says that the answer which was due has been read to its end.

 @param pipeline the pipeline; NULL, and one where none is due, are left alone.

 Returns: nothing. Errors: none.

 # Safety
 As csync_rs_pipeline_has_room().
 */
void csync_rs_pipeline_answered(struct csync_pipeline *pipeline);

/*
 Sends as much of what was asked as leaves without waiting.

 @param pipeline the pipeline.
 @param write sends at most `count` (at most CSYNC_CHUNK) bytes without waiting: their number, or -1 with errno and
   nothing sent. EAGAIN: no room now, and the next call is given the same bytes, as many as before; EINTR: called
   again at once.
 @param userdata passed to `write`.

 Returns: how many bytes are left, or -1 with errno set.

 Errors: EINVAL for a NULL `pipeline` or `write`; else what `write` said.

 # Safety
 As csync_rs_pipeline_has_room(); `write` is NULL or may be called with `userdata`.
 */
ssize_t csync_rs_pipeline_send(struct csync_pipeline *pipeline,
                               ssize_t (*write)(void *userdata, const void *buffer, size_t count),
                               void *userdata);

/*
 Registers the program that this library is linked into, once per process, so that the functions of `rsync.c`
 (csync_rs_check(), csync_rs_patch(), ...) can be used outside csync2. It goes ahead of csync2's own symbols.

 @param host copied; its functions and userdata must stay valid until the process ends.

 Returns: 0, or -1 with errno set.

 Errors: EINVAL for NULL and for a size of less than the first member; EBUSY where a host is registered already.

 # Safety
 `host` is NULL or points to `host->size` readable bytes; its functions may be called from every thread that calls
 the functions of `rsync.c`.
 */
int csync_host_register(const struct csync_host *host);

/*
 A status in words.

 @param status a csync_status; any number is allowed.

 Returns: a constant string, never NULL. Errors: none. Safety: may be called from any thread.
 */
const char *csync_status_text(int status);

/*
 Makes an engine over two descriptors: a stream socket (both the same), two pipes, or other streams. Blocking or not,
 they are used without waiting in a read or a write, their flags are left alone, and no SIGPIPE is raised. The kernel
 sends long ranges of a file by itself to a pipe, and to a socket that is O_NONBLOCK. While output has to wait, input is
 taken in, up to 16 MiB, so that a peer that sends as well does not wait for ever.

 @param input read from; stays the caller's, who closes it after csync_engine_free().
 @param output written to; may be the same, likewise the caller's.
 @param options NULL, or how to work; copied.
 @param out set to the engine, or to NULL on errors.

 Returns: CSYNC_OK, or CSYNC_E_ARGUMENT.

 Errors: CSYNC_E_ARGUMENT for a descriptor that is not open, or not for reading or writing, a socket or a pipe that is
 not a stream (packets need a transport that knows their limits), a NULL `out`, an options size below sizeof(size_t).

 # Safety
 `options` is NULL or points to `options->size` readable bytes, its strings end in NUL, and its functions may be
 called with its userdata until csync_engine_free(); `out` is NULL or valid for a write; the descriptors stay open.
 */
enum csync_status csync_engine_over_descriptors(int input,
                                                int output,
                                                const struct csync_options *options,
                                                struct csync_engine **out);

/*
 Makes an engine over a transport of the program's own.

 @param transport copied; its functions and userdata stay valid until csync_engine_free().
 @param options NULL, or how to work; copied.
 @param out set to the engine, or to NULL on errors.

 Returns: CSYNC_OK, or CSYNC_E_ARGUMENT.

 Errors: CSYNC_E_ARGUMENT for a NULL `transport`, `read`, `write` or `out`, and for sizes below sizeof(size_t).

 # Safety
 As csync_engine_over_descriptors(); `transport` is NULL or points to `transport->size` readable bytes.
 */
enum csync_status csync_engine_over_transport(const struct csync_transport *transport,
                                              const struct csync_options *options,
                                              struct csync_engine **out);

/*
 Makes an engine over the connection of the host: the one given to csync_host_register(), or csync2's own `conn_read`
 and `conn_write`.

 @param options NULL, or how to work; copied.
 @param out set to the engine, or to NULL on errors.

 Returns: CSYNC_OK, or CSYNC_E_ARGUMENT for a NULL `out` and an options size below sizeof(size_t). A host without a
 connection shows at the first call.

 # Safety
 As csync_engine_over_descriptors().
 */
enum csync_status csync_engine_over_host(const struct csync_options *options,
                                         struct csync_engine **out);

/*
 Frees an engine. The connection stays open.

 @param engine NULL is allowed.

 Returns: nothing. Errors: none.

 # Safety
 `engine` is NULL or an engine that is not freed yet and that no call is under way on.
 */
void csync_engine_free(struct csync_engine *engine);

/*
 Ends the call that is under way on an engine, as soon as it does not wait in a function of the program's own. It
 returns CSYNC_E_CANCELLED; the connection is then in the middle of something, and the engine cannot be used again.
 Without a call under way, the next one ends at once.

 @param engine NULL is allowed.

 Returns: nothing. Errors: none.

 # Safety
 `engine` is NULL or an engine that is not freed before this returns. May be called from any thread and from a
 signal handler.
 */
void csync_engine_cancel(const struct csync_engine *engine);

/*
 The last error of an engine, in words: file, step and reason.

 @param engine the engine.

 Returns: a string that is valid until the next call on this engine; empty where its last call was well, and for NULL.
 Errors: none.

 # Safety
 `engine` is NULL or an engine that no call is under way on.
 */
const char *csync_engine_error(const struct csync_engine *engine);

/*
 The errno that belongs to the last error of an engine.

 @param engine the engine.

 Returns: an errno (ETIMEDOUT for CSYNC_E_TIMEOUT, ECANCELED for CSYNC_E_CANCELLED), 0 where its last call was well,
 EINVAL for NULL. Errors: none.

 # Safety
 As csync_engine_error().
 */
int csync_engine_errno(const struct csync_engine *engine);

/*
 Sends the content of a file: `octet-stream N`, then its N bytes.

 @param engine the engine.
 @param descriptor a regular file, open for reading; sent from its start wherever its position is, which is left.

 Returns: CSYNC_OK or an error. CSYNC_E_FILE: where nothing had been sent the peer got `ERROR`, and both ends are in
 step; where the file failed in the middle, the engine cannot be used again, and the connection must be closed.

 # Safety
 `engine` is NULL or an engine that is not freed meanwhile.
 */
enum csync_status csync_engine_send(struct csync_engine *engine,
                                    int descriptor);

/*
 Receives content and writes it to a descriptor, at its position.

 @param engine the engine.
 @param descriptor open for writing. Blocking or not, one that takes nothing now (a full pipe) is waited for without
   waiting in a write: the call can be cancelled, and ends with CSYNC_E_FILE and ETIMEDOUT after the silence limit.
 @param length NULL, or set to the number of bytes received.

 Returns: CSYNC_OK or an error. After CSYNC_E_FILE (and every error but a lost connection and CSYNC_E_CANCELLED) all of
 the payload has been read, and both ends are in step.

 # Safety
 `engine` is NULL or an engine that is not freed meanwhile; `length` is NULL or valid for a write.
 */
enum csync_status csync_engine_receive(struct csync_engine *engine,
                                       int descriptor,
                                       uint64_t *length);

/*
 Sends the signature of a file, for a peer that checks or makes a delta. A file that does not exist has the signature
 of nothing.

 @param engine the engine.
 @param path the file; not followed where it is a symbolic link.

 Returns: CSYNC_OK or an error. CSYNC_E_FILE: the file cannot be read, the peer got the signature of nothing, and
 csync_engine_patch() of this file will read the delta and fail; both ends are in step.

 # Safety
 `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL.
 */
enum csync_status csync_engine_signature(struct csync_engine *engine,
                                         const char *path);

/*
 Reads the peer's signature and compares a file with it as it arrives.

 @param engine the engine.
 @param path the file; not followed where it is a symbolic link. One that does not exist equals an empty payload only.
 @param differs set to 0 for equal and 1 for different; a file that cannot be read, and a peer that reports an error,
   count as different, with a message in the log.

 Returns: CSYNC_OK or an error; only a lost connection (or an argument) is one.

 # Safety
 `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL; `differs` is
 NULL or valid for a write.
 */
enum csync_status csync_engine_check(struct csync_engine *engine,
                                     const char *path,
                                     int *differs);

/*
 Reads the peer's signature and sends the delta from the peer's version of a file to ours.

 @param engine the engine.
 @param path the file; not followed where it is a symbolic link.

 Returns: CSYNC_OK or an error. After every error but a lost connection the peer has got a delta or `ERROR`, and both
 ends are in step. CSYNC_E_CHANGED: the file changed while it was read; the peer has what was read, or a delta that it
 refuses.

 # Safety
 `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL.
 */
enum csync_status csync_engine_delta(struct csync_engine *engine,
                                     const char *path);

/*
 Reads the peer's delta and replaces a file by what it makes of it, as csync_rs_patch() does.

 @param engine the engine.
 @param path the file that csync_engine_signature() was called for; not followed where it is a symbolic link.

 Returns: CSYNC_OK or an error. After every error the old file is as it was and nothing of the new one is left; after
 every error but a lost connection the whole delta has been read. CSYNC_E_CHANGED: the file changed since its
 signature was sent.

 # Safety
 `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL.
 */
enum csync_status csync_engine_patch(struct csync_engine *engine,
                                     const char *path);

/*
 Sends a whole file to a peer that calls csync_engine_pull(), as a delta to what it has, and waits for its answer.

 @param engine the engine.
 @param path the file; not followed where it is a symbolic link.

 Returns: CSYNC_OK: the peer has the file in place. Else an error; CSYNC_E_PEER: the peer could not put it in place.
 Both ends are in step after each but a lost connection.

 # Safety
 `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL.
 */
enum csync_status csync_engine_push(struct csync_engine *engine,
                                    const char *path);

/*
 Receives a whole file from a peer that calls csync_engine_push(), as a delta to what is there, and answers it.

 @param engine the engine.
 @param path where the file is, or is to be; not followed where it is a symbolic link.

 Returns: CSYNC_OK: the file is in place. Else an error, as csync_engine_patch(); the peer has been told, and both
 ends are in step after each but a lost connection.

 # Safety
 `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL.
 */
enum csync_status csync_engine_pull(struct csync_engine *engine,
                                    const char *path);

/*
 Makes a configuration that has no certificate yet.

 @param options NULL, or how the sessions work; copied.
 @param out set to the configuration, or to NULL on errors.

 Returns: CSYNC_OK, or CSYNC_E_ARGUMENT.

 Errors: CSYNC_E_ARGUMENT for a NULL `out`, an options size below sizeof(size_t), a version that is not named there.

 # Safety
 `options` is NULL or points to `options->size` readable bytes, and its function may be called with its userdata
 until the configuration and all its sessions are freed; `out` is NULL or valid for a write.
 */
enum csync_status csync_tls_config_new(const struct csync_tls_options *options,
                                       struct csync_tls_config **out);

/*
 Reads the certificate that this side shows, and its key. Each file is PEM or DER; a key is PKCS#8, PKCS#1 or SEC1
 and not encrypted; of several certificates in a PEM file the first is this side's own. Kinds of keys: RSA of 2048 to
 4096 bits, P-256, P-384, Ed25519, and, in a library with the feature `tls-rsa-1024`, RSA of 1024 to 2047 bits, with a
 warning to the log. The certificate may be X.509 v1, self-signed, and out of date.

 May be called again, with other files: sessions made from then on have the new ones.

 @param config the configuration.
 @param certificate the path of the certificate.
 @param key the path of the key; may be the same file.

 Returns: CSYNC_OK, or a status with csync_tls_config_error().

 Errors: CSYNC_E_FILE for a file that cannot be read, that holds no certificate or key, a key of a kind that is not
 named above, and one that does not belong to the certificate: the text names the file and says what to do;
 CSYNC_E_ARGUMENT for NULL; CSYNC_E_INTERNAL. After errors the configuration is as it was.

 # Safety
 `config` is NULL or a configuration that no other call is under way on; the paths are NULL or end in NUL.
 */
enum csync_status csync_tls_config_load(struct csync_tls_config *config,
                                        const char *certificate,
                                        const char *key);

/*
 The last error of a configuration, in words: file, step and reason.

 @param config the configuration.

 Returns: a string that is valid until the next call of csync_tls_config_load() on it; empty where that was well, and
 for NULL. Errors: none.

 # Safety
 `config` is NULL or a configuration that csync_tls_config_load() is not under way on.
 */
const char *csync_tls_config_error(const struct csync_tls_config *config);

/*
 Frees a configuration. Sessions made of it go on.

 @param config NULL is allowed.

 Returns: nothing. Errors: none.

 # Safety
 `config` is NULL or a configuration that is not freed yet and that no call is under way on.
 */
void csync_tls_config_free(struct csync_tls_config *config);

/*
 Makes the client's side of a session. Nothing is sent yet: csync_tls_handshake() is next.

 Blocking or not, the descriptors are used without waiting in a read or a write, and no SIGPIPE is raised. Nothing
 that was read from them ahead may be left anywhere: it would have to be the peer's first bytes of TLS.

 @param config the configuration, loaded; may be freed at any time after this.
 @param input read from; stays the caller's, who closes it after csync_tls_free().
 @param output written to; may be the same, likewise the caller's.
 @param out set to the session, or to NULL on errors.

 Returns: CSYNC_OK, CSYNC_E_ARGUMENT, or CSYNC_E_INTERNAL.

 Errors: CSYNC_E_ARGUMENT for a configuration that is NULL or not loaded, a descriptor that is not open, or not for
 reading or writing, a socket or a pipe that is not a stream, a NULL `out`; CSYNC_E_INTERNAL where the system gives no
 random numbers.

 # Safety
 `config` is NULL or a configuration that csync_tls_config_load() is not under way on; `out` is NULL or valid for a
 write; the descriptors stay open until csync_tls_free().
 */
enum csync_status csync_tls_client(const struct csync_tls_config *config,
                                   int input,
                                   int output,
                                   struct csync_tls **out);

/*
 Makes the server's side of a session; the rest is as for csync_tls_client().

 @param config the configuration, loaded; may be freed at any time after this.
 @param input read from; stays the caller's, who closes it after csync_tls_free().
 @param output written to; may be the same, likewise the caller's.
 @param out set to the session, or to NULL on errors.

 Returns: CSYNC_OK, CSYNC_E_ARGUMENT, or CSYNC_E_INTERNAL. Errors: as csync_tls_client().

 # Safety
 As csync_tls_client().
 */
enum csync_status csync_tls_server(const struct csync_tls_config *config,
                                   int input,
                                   int output,
                                   struct csync_tls **out);

/*
 Shakes hands: waits until both sides have keys, the peer has shown a certificate, and its signature is good. With
 TLS 1.3 a client learns only at its first read or write that the server has refused its certificate.

 @param tls the session.

 Returns: CSYNC_OK, also where it was done before, or a status with csync_tls_error(); the session is of no use then,
 and the peer has been told why.

 Errors: CSYNC_E_IDENTITY where the peer shows no certificate, or a signature that is not of its key;
 CSYNC_E_PEER where the peer reports an error; CSYNC_E_FORMAT for what is no TLS, and for a peer that wants what this
 side cannot do; CSYNC_E_CONNECTION where the connection is lost; CSYNC_E_TIMEOUT after the limit for handshakes;
 CSYNC_E_STATE after an error, or csync_tls_close(); CSYNC_E_ARGUMENT for NULL; CSYNC_E_INTERNAL.

 # Safety
 `tls` is NULL or a session that no other call is under way on.
 */
enum csync_status csync_tls_handshake(struct csync_tls *tls);

/*
 The peer's certificate as DER, byte by byte as it came.

 @param tls the session.
 @param length NULL, or set to the number of bytes, 0 where there is no certificate.

 Returns: the bytes, valid until csync_tls_free(); NULL before a handshake that was well, and for NULL. Errors: none.

 # Safety
 `tls` is NULL or a session that no call is under way on; `length` is NULL or valid for a write.
 */
const unsigned char *csync_tls_peer_certificate(const struct csync_tls *tls,
                                                size_t *length);

/*
 The SHA-256 of the peer's certificate, as `openssl x509 -fingerprint -sha256` writes it: 32 pairs of hexadecimal
 digits, in capitals, with colons between them.

 @param tls the session.

 Returns: a string of 95 characters, valid until csync_tls_free(); empty before a handshake that was well, and for
 NULL. Errors: none.

 # Safety
 `tls` is NULL or a session that no call is under way on.
 */
const char *csync_tls_peer_fingerprint(const struct csync_tls *tls);

/*
 The version of TLS that was agreed on: "TLS 1.3" or "TLS 1.2".

 @param tls the session.

 Returns: a constant string; empty before a handshake that was well, and for NULL. Errors: none.

 # Safety
 `tls` is NULL or a session that no call is under way on.
 */
const char *csync_tls_version(const struct csync_tls *tls);

/*
 The cipher suite that was agreed on, by its name in the standard, such as "TLS_AES_128_GCM_SHA256".

 @param tls the session.

 Returns: a string, valid until csync_tls_free(); empty before a handshake that was well, and for NULL. Errors: none.

 # Safety
 `tls` is NULL or a session that no call is under way on.
 */
const char *csync_tls_suite(const struct csync_tls *tls);

/*
 Reads: waits for the first byte, and returns what is there. What was written before is sent first.

 @param tls the session, after its handshake.
 @param buffer filled.
 @param count its size in bytes. 0 reads nothing and returns 0.

 Returns: the number of bytes, 0 at the end of the stream where the peer has said that it is one (close_notify), -1
 with errno and csync_tls_error().

 Errors: ECONNABORTED where the stream ends without the peer's word: an end at a command's border (old peers never say
 one), cut off inside a payload: the caller knows which. The same is returned by each further call. EPROTO where the
 peer breaks TLS or reports an error; ETIMEDOUT where nothing moves for the limit of silence; ENOTCONN before
 the handshake, after an error, and after csync_tls_close(); EINVAL for NULL; others of the system's, ECONNRESET
 first of all. EINTR and EAGAIN are never returned.

 # Safety
 `tls` is NULL or a session that no other call is under way on; `buffer` is valid for writes of `count` bytes.
 */
ssize_t csync_tls_read(struct csync_tls *tls,
                       void *buffer,
                       size_t count);

/*
 Writes all of it. Small pieces are gathered, and go out in full records when 64 KiB are there, and with the next
 csync_tls_read(), csync_tls_flush(), or csync_tls_close(). Ahead of waiting for anything else (another descriptor, a
 child, a lock), call csync_tls_flush(). While it waits nothing is read: two sides that both write more than the
 connection holds, and read only then, wait for each other until the time limit (an engine over the session does not).

 @param tls the session, after its handshake.
 @param buffer what is written.
 @param count the number of bytes.

 Returns: `count`, or -1 with errno and csync_tls_error(); how much has arrived is not known then.

 Errors: as csync_tls_read(); EPIPE where the peer has closed the connection; EOVERFLOW where
 the keys of TLS 1.2 have served for 2^24 records (256 GiB in full ones), of which nothing is lost but what this
 call was to send.

 # Safety
 `tls` is NULL or a session that no other call is under way on; `buffer` is valid for reads of `count` bytes.
 */
ssize_t csync_tls_write(struct csync_tls *tls,
                        const void *buffer,
                        size_t count);

/*
 Sends what csync_tls_write() has gathered, and waits until the descriptor has taken it.

 @param tls the session, after its handshake.

 Returns: 0, or -1 with errno and csync_tls_error(). Errors: as csync_tls_write().

 # Safety
 `tls` is NULL or a session that no other call is under way on.
 */
int csync_tls_flush(struct csync_tls *tls);

/*
 How many bytes csync_tls_read() would return without looking at the descriptor: ask ahead of a poll(2) on it.

 @param tls the session.

 Returns: the number; 1 where it would return the end or an error at once; 0 where it would look at the descriptor,
 before the handshake, after an error that was returned, and for NULL.
 Errors: none.

 # Safety
 `tls` is NULL or a session that no other call is under way on.
 */
size_t csync_tls_pending(struct csync_tls *tls);

/*
 Ends a session: sends what is left and that this was all, and waits until the peer has said the same or is gone, but
 for a second at most; what the peer sends meanwhile is thrown away. The descriptors stay open.

 @param tls the session, in any state.

 Returns: 0 where everything was sent, whatever the peer has said, and where there is nothing to end: no
 handshake was done, or it is closed; -1 with errno and csync_tls_error() otherwise.

 Errors: EINVAL for NULL, ETIMEDOUT where the peer takes nothing for a second, ENOTCONN after an error; others of the
 system's.

 # Safety
 `tls` is NULL or a session that no other call is under way on.
 */
int csync_tls_close(struct csync_tls *tls);

/*
 The last error of a session, in words: step and reason.

 @param tls the session.

 Returns: a string that is valid until the next call on this session; empty where its last call was well, and for
 NULL. Errors: none.

 # Safety
 `tls` is NULL or a session that no call is under way on.
 */
const char *csync_tls_error(const struct csync_tls *tls);

/*
 Frees a session. Nothing is sent, and nothing is closed.

 @param tls NULL is allowed.

 Returns: nothing. Errors: none.

 # Safety
 `tls` is NULL or a session that is not freed yet, that no call is under way on, and that no engine uses.
 */
void csync_tls_free(struct csync_tls *tls);

/*
 Makes an engine over a TLS session. It takes up where the session is: what csync_tls_write() has gathered goes out
 ahead of what the engine sends. After csync_engine_free() the session serves its own functions again.

 @param tls the session, after its handshake; stays the caller's.
 @param options NULL, or how to work; copied. `keepalive` is not looked at.
 @param out set to the engine, or to NULL on errors.

 Returns: CSYNC_OK, or CSYNC_E_ARGUMENT.

 Errors: CSYNC_E_ARGUMENT for a session that is NULL, before its handshake, failed or closed; a NULL `out`; an options
 size below sizeof(size_t).

 # Safety
 `tls` is NULL or a session that is not freed before the engine is, and that no call is made on meanwhile; the rest as
 for csync_engine_over_descriptors().
 */
enum csync_status csync_engine_over_tls(struct csync_tls *tls,
                                        const struct csync_options *options,
                                        struct csync_engine **out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CSYNC_RS_H */
