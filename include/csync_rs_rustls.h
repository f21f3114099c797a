/*
 * csync-rs: an engine over a connection of rustls-ffi's; in a library that is built with the feature rustls-ffi.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Made from the comments in src/ffi by cbindgen: `make header`. Do not edit.
 */

#ifndef CSYNC_RS_RUSTLS_H
#define CSYNC_RS_RUSTLS_H

#include "csync_rs.h"

/* Of rustls.h, which the same archive brings along. */
struct rustls_connection;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Makes a transport for csync_engine_over_transport() of a connection of rustls-ffi's, over the descriptors that it was
 set up for. Blocking or not, they are used without waiting in a read or a write.

 @param connection a client's or a server's, its handshake done; stays the caller's, who frees it after
 csync_transport_free_rustls().
 @param input read from; stays the caller's.
 @param output written to; may be the same, likewise the caller's.
 @param out filled in; give it to csync_transport_free_rustls() when no engine uses it any more.

 Returns: CSYNC_OK, or CSYNC_E_ARGUMENT. Where the peer's stream ends without close_notify, the engine's verbs end with
 CSYNC_E_CONNECTION and the errno ECONNABORTED; where the peer breaks TLS, with EPROTO; with TLS 1.2 they end with
 EOVERFLOW after 2^23 records.

 Errors: CSYNC_E_ARGUMENT for NULL, and for descriptors as with csync_engine_over_descriptors().

 # Safety
 `connection` is NULL or a connection that is not freed, and that no other call is made on, while an engine uses the
 transport; `out` is NULL or valid for a write; the descriptors stay open as long.
 */
csync_status csync_transport_from_rustls(struct rustls_connection *connection,
                                         int input,
                                         int output,
                                         csync_transport *out);

/*
 Frees what csync_transport_from_rustls() has made. The connection and its descriptors stay as they are.

 @param transport NULL is allowed, and one that is freed already.

 Returns: nothing. Errors: none.

 # Safety
 `transport` is NULL, or was filled in by csync_transport_from_rustls(), and no engine uses it.
 */
void csync_transport_free_rustls(csync_transport *transport);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CSYNC_RS_RUSTLS_H */
