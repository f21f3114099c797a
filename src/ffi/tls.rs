//! TLS for C programs: sessions over two descriptors, and engines over sessions.

/// How TLS sessions work. All zeroes, but for the size, is a good choice; so is NULL in its place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct csync_tls_options {
    /// sizeof(struct csync_tls_options): members behind it are taken as 0.
    pub size: usize,
    /// 0: TLS 1.3 where the peer knows it, and 1.2 otherwise. 12 or 13: TLS 1.2, or 1.3, and nothing else.
    pub version: c_uint,
    /// How many milliseconds a handshake may take, all of it. 0: 60000; UINT_MAX: no limit.
    pub handshake_limit: c_uint,
    /// After how many milliseconds in which nothing moves csync_tls_read(), csync_tls_write() and csync_tls_flush()
    /// give up. 0: 600000; UINT_MAX: never. An engine over the session has a limit of its own.
    pub silence_limit: c_uint,
    /// Passed to the function below.
    pub userdata: *mut c_void,
    /// NULL, or takes messages without an end of line; level 0 is worth showing, 3 is the most detailed. Called by the
    /// functions that take the configuration, or a session made of it, on the thread that calls them.
    pub log:
        Option<unsafe extern "C" fn(userdata: *mut c_void, level: c_int, message: *const c_char)>,
}

/// What sessions have in common: a certificate with its key, and options. May be used by several threads at a time once
/// it is loaded.
pub struct csync_tls_config {
    inner: UnsafeCell<Configured>,
}

/// A TLS session over two descriptors. Two sessions know nothing of each other; one serves one call at a time.
///
/// Trust: both sides show a certificate, and prove by a signature over this very handshake that they have its key. That
/// is all that is checked: neither issuer nor names nor dates are looked at. Whether it is the right certificate is for
/// the caller to say, who compares csync_tls_peer_certificate() with the one that is known, byte by byte, ahead of the
/// first read or write.
pub struct csync_tls {
    inner: UnsafeCell<Inner>,
}

/// Makes a configuration that has no certificate yet.
///
/// @param options NULL, or how the sessions work; copied.
/// @param out set to the configuration, or to NULL on errors.
///
/// Returns: CSYNC_OK, or CSYNC_E_ARGUMENT.
///
/// Errors: CSYNC_E_ARGUMENT for a NULL `out`, an options size below sizeof(size_t), a version that is not named there.
///
/// # Safety
/// `options` is NULL or points to `options->size` readable bytes, and its function may be called with its userdata
/// until the configuration and all its sessions are freed; `out` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_config_new(
    options: *const csync_tls_options,
    out: *mut *mut csync_tls_config,
) -> csync_status {
    todo!()
}

/// Reads the certificate that this side shows, and its key. Each file is PEM or DER; a key is PKCS#8, PKCS#1 or SEC1
/// and not encrypted; of several certificates in a PEM file the first is this side's own. Kinds of keys: RSA of 2048 to
/// 4096 bits, P-256, P-384, Ed25519, and, in a library with the feature `tls-rsa-1024`, RSA of 1024 to 2047 bits, with a
/// warning to the log. The certificate may be X.509 v1, self-signed, and out of date.
///
/// May be called again, with other files: sessions made from then on have the new ones.
///
/// @param config the configuration.
/// @param certificate the path of the certificate.
/// @param key the path of the key; may be the same file.
///
/// Returns: CSYNC_OK, or a status with csync_tls_config_error().
///
/// Errors: CSYNC_E_FILE for a file that cannot be read, that holds no certificate or key, a key of a kind that is not
/// named above, and one that does not belong to the certificate: the text names the file and says what to do;
/// CSYNC_E_ARGUMENT for NULL; CSYNC_E_INTERNAL. After errors the configuration is as it was.
///
/// # Safety
/// `config` is NULL or a configuration that no other call is under way on; the paths are NULL or end in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_config_load(
    config: *mut csync_tls_config,
    certificate: *const c_char,
    key: *const c_char,
) -> csync_status {
    todo!()
}

/// The last error of a configuration, in words: file, step and reason.
///
/// @param config the configuration.
///
/// Returns: a string that is valid until the next call of csync_tls_config_load() on it; empty where that was well, and
/// for NULL. Errors: none.
///
/// # Safety
/// `config` is NULL or a configuration that csync_tls_config_load() is not under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_config_error(config: *const csync_tls_config) -> *const c_char {
    todo!()
}

/// Frees a configuration. Sessions made of it go on.
///
/// @param config NULL is allowed.
///
/// Returns: nothing. Errors: none.
///
/// # Safety
/// `config` is NULL or a configuration that is not freed yet and that no call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_config_free(config: *mut csync_tls_config) {
    todo!()
}

/// Makes the client's side of a session. Nothing is sent yet: csync_tls_handshake() is next.
///
/// Blocking or not, the descriptors are used without waiting in a read or a write, and no SIGPIPE is raised. Nothing
/// that was read from them ahead may be left anywhere: it would have to be the peer's first bytes of TLS.
///
/// @param config the configuration, loaded; may be freed at any time after this.
/// @param input read from; stays the caller's, who closes it after csync_tls_free().
/// @param output written to; may be the same, likewise the caller's.
/// @param out set to the session, or to NULL on errors.
///
/// Returns: CSYNC_OK, or CSYNC_E_ARGUMENT.
///
/// Errors: CSYNC_E_ARGUMENT for a configuration that is NULL or not loaded, a descriptor that is not open, or not for
/// reading or writing, a socket or a pipe that is not a stream, a NULL `out`.
///
/// # Safety
/// `config` is NULL or a configuration that csync_tls_config_load() is not under way on; `out` is NULL or valid for a
/// write; the descriptors stay open until csync_tls_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_client(
    config: *const csync_tls_config,
    input: c_int,
    output: c_int,
    out: *mut *mut csync_tls,
) -> csync_status {
    todo!()
}

/// Makes the server's side of a session; the rest is as for csync_tls_client().
///
/// @param config the configuration, loaded; may be freed at any time after this.
/// @param input read from; stays the caller's, who closes it after csync_tls_free().
/// @param output written to; may be the same, likewise the caller's.
/// @param out set to the session, or to NULL on errors.
///
/// Returns: CSYNC_OK, or CSYNC_E_ARGUMENT. Errors: as csync_tls_client().
///
/// # Safety
/// As csync_tls_client().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_server(
    config: *const csync_tls_config,
    input: c_int,
    output: c_int,
    out: *mut *mut csync_tls,
) -> csync_status {
    todo!()
}

/// Shakes hands: waits until both sides have keys, the peer has shown a certificate, and its signature is good. With
/// TLS 1.3 a client learns only at its first read or write that the server has refused its certificate.
///
/// @param tls the session.
///
/// Returns: CSYNC_OK, also where it was done before, or a status with csync_tls_error(); the session is of no use then,
/// and the peer has been told why.
///
/// Errors: CSYNC_E_IDENTITY where the peer shows no certificate, or a signature that is not of its key;
/// CSYNC_E_PEER where the peer reports an error; CSYNC_E_FORMAT for what is no TLS, and for a peer that wants what this
/// side cannot do; CSYNC_E_CONNECTION where the connection is lost; CSYNC_E_TIMEOUT after the limit for handshakes;
/// CSYNC_E_STATE after an error, or csync_tls_close(); CSYNC_E_ARGUMENT for NULL; CSYNC_E_INTERNAL.
///
/// # Safety
/// `tls` is NULL or a session that no other call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_handshake(tls: *mut csync_tls) -> csync_status {
    todo!()
}

/// The peer's certificate as DER, byte by byte as it came.
///
/// @param tls the session.
/// @param length NULL, or set to the number of bytes, 0 where there is no certificate.
///
/// Returns: the bytes, valid until csync_tls_free(); NULL before a handshake that was well, and for NULL. Errors: none.
///
/// # Safety
/// `tls` is NULL or a session that no call is under way on; `length` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_peer_certificate(
    tls: *const csync_tls,
    length: *mut usize,
) -> *const c_uchar {
    todo!()
}

/// The SHA-256 of the peer's certificate, as `openssl x509 -fingerprint -sha256` writes it: 32 pairs of hexadecimal
/// digits, in capitals, with colons between them.
///
/// @param tls the session.
///
/// Returns: a string of 95 characters, valid until csync_tls_free(); empty before a handshake that was well, and for
/// NULL. Errors: none.
///
/// # Safety
/// `tls` is NULL or a session that no call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_peer_fingerprint(tls: *const csync_tls) -> *const c_char {
    todo!()
}

/// The version of TLS that was agreed on: "TLS 1.3" or "TLS 1.2".
///
/// @param tls the session.
///
/// Returns: a constant string; empty before a handshake that was well, and for NULL. Errors: none.
///
/// # Safety
/// `tls` is NULL or a session that no call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_version(tls: *const csync_tls) -> *const c_char {
    todo!()
}

/// The cipher suite that was agreed on, by its name in the standard, such as "TLS_AES_128_GCM_SHA256".
///
/// @param tls the session.
///
/// Returns: a string, valid until csync_tls_free(); empty before a handshake that was well, and for NULL. Errors: none.
///
/// # Safety
/// `tls` is NULL or a session that no call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_suite(tls: *const csync_tls) -> *const c_char {
    todo!()
}

/// Reads: waits for the first byte, and returns what is there. What was written before is sent first.
///
/// @param tls the session, after its handshake.
/// @param buffer filled.
/// @param count its size in bytes. 0 reads nothing and returns 0.
///
/// Returns: the number of bytes, 0 at the end of the stream where the peer has said that it is one (close_notify), -1
/// with errno and csync_tls_error().
///
/// Errors: ECONNABORTED where the stream ends without the peer's word: an end at a command's border (old peers never say
/// one), cut off inside a payload: the caller knows which. The same is returned by each further call. EPROTO where the
/// peer breaks TLS or reports an error; ETIMEDOUT where nothing moves for the limit of silence; ENOTCONN before
/// the handshake, after an error, and after csync_tls_close(); EINVAL for NULL; others of the system's, ECONNRESET
/// first of all. EINTR and EAGAIN are never returned.
///
/// # Safety
/// `tls` is NULL or a session that no other call is under way on; `buffer` is valid for writes of `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_read(
    tls: *mut csync_tls,
    buffer: *mut c_void,
    count: usize,
) -> libc::ssize_t {
    todo!()
}

/// Writes all of it. Small pieces are gathered, and go out in full records when 64 KiB are there, and with the next
/// csync_tls_read(), csync_tls_flush(), or csync_tls_close(). Ahead of waiting for anything else (another descriptor, a
/// child, a lock), call csync_tls_flush().
///
/// @param tls the session, after its handshake.
/// @param buffer what is written.
/// @param count the number of bytes.
///
/// Returns: `count`, or -1 with errno and csync_tls_error(); how much has arrived is not known then.
///
/// Errors: as csync_tls_read(), without ECONNABORTED; EPIPE where the peer has closed the connection; EOVERFLOW where
/// the keys of TLS 1.2 have served for 2^24 records (256 GiB in full ones), of which nothing is lost but what this
/// call was to send.
///
/// # Safety
/// `tls` is NULL or a session that no other call is under way on; `buffer` is valid for reads of `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_write(
    tls: *mut csync_tls,
    buffer: *const c_void,
    count: usize,
) -> libc::ssize_t {
    todo!()
}

/// Sends what csync_tls_write() has gathered, and waits until the descriptor has taken it.
///
/// @param tls the session, after its handshake.
///
/// Returns: 0, or -1 with errno and csync_tls_error(). Errors: as csync_tls_write().
///
/// # Safety
/// `tls` is NULL or a session that no other call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_flush(tls: *mut csync_tls) -> c_int {
    todo!()
}

/// How many bytes csync_tls_read() would return without looking at the descriptor: ask ahead of a poll(2) on it.
///
/// @param tls the session.
///
/// Returns: the number; 0 also where the end or an error would be returned at once, before the handshake, and for NULL.
/// Errors: none.
///
/// # Safety
/// `tls` is NULL or a session that no other call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_pending(tls: *mut csync_tls) -> usize {
    todo!()
}

/// Ends a session: sends what is left and that this was all, and waits until the peer has said the same or is gone, but
/// for a second at most; what the peer sends meanwhile is thrown away. The descriptors stay open.
///
/// @param tls the session, in any state.
///
/// Returns: 0 where everything was sent, whatever the peer has said, and where there is nothing to end: no
/// handshake was done, or it is closed; -1 with errno and csync_tls_error() otherwise.
///
/// Errors: EINVAL for NULL, ETIMEDOUT where the peer takes nothing for a second, ENOTCONN after an error; others of the
/// system's.
///
/// # Safety
/// `tls` is NULL or a session that no other call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_close(tls: *mut csync_tls) -> c_int {
    todo!()
}

/// The last error of a session, in words: step and reason.
///
/// @param tls the session.
///
/// Returns: a string that is valid until the next call on this session; empty where its last call was well, and for
/// NULL. Errors: none.
///
/// # Safety
/// `tls` is NULL or a session that no call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_error(tls: *const csync_tls) -> *const c_char {
    todo!()
}

/// Frees a session, and wipes its keys. Nothing is sent, and nothing is closed.
///
/// @param tls NULL is allowed.
///
/// Returns: nothing. Errors: none.
///
/// # Safety
/// `tls` is NULL or a session that is not freed yet, that no call is under way on, and that no engine uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_free(tls: *mut csync_tls) {
    todo!()
}

/// Makes an engine over a TLS session. It takes up where the session is: what csync_tls_write() has gathered goes out
/// ahead of what the engine sends. After csync_engine_free() the session serves its own functions again.
///
/// @param tls the session, after its handshake; stays the caller's.
/// @param options NULL, or how to work; copied. `keepalive` is not looked at.
/// @param out set to the engine, or to NULL on errors.
///
/// Returns: CSYNC_OK, or CSYNC_E_ARGUMENT.
///
/// Errors: CSYNC_E_ARGUMENT for a session that is NULL, before its handshake, failed or closed; a NULL `out`; an options
/// size below sizeof(size_t).
///
/// # Safety
/// `tls` is NULL or a session that is not freed before the engine is, and that no call is made on meanwhile; the rest as
/// for csync_engine_over_descriptors().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_over_tls(
    tls: *mut csync_tls,
    options: *const csync_options,
    out: *mut *mut csync_engine,
) -> csync_status {
    todo!()
}
