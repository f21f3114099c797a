//! TLS for C programs: sessions over two descriptors, and engines over sessions.

use super::engine::{clear, csync_engine, hand_out};
use super::guard::{panic_text, quietly, set_errno};
use super::options::{csync_options, options_of};
use super::pointer;
use super::sigpipe::NoSigpipe;
use super::status::csync_status::{self, *};
use crate::transport::tls::{
    self, Configuration, Failure, GOOD_RSA, Identity, KeyKind, Reason, Role, Session, Versions,
};
use crate::transport::{DescriptorPair, Direction, Transport};
use std::ffi::{CString, c_char, c_int, c_uchar, c_uint, c_void};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The longest time that handshake_limit means by 0.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(60);

/// The longest time that silence_limit means by 0.
const SILENCE_LIMIT: Duration = Duration::from_secs(600);

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
    options: csync_tls_options,
    versions: Versions,
    configuration: Option<Configuration>,
    error: CString,
}

/// A TLS session over two descriptors. Two sessions know nothing of each other; one serves one call at a time.
///
/// Trust: both sides show a certificate, and prove by a signature over this very handshake that they have its key. That
/// is all that is checked: neither issuer nor names nor dates are looked at. Whether it is the right certificate is for
/// the caller to say, who compares csync_tls_peer_certificate() with the one that is known, byte by byte, ahead of the
/// first read or write.
pub struct csync_tls {
    session: Session<DescriptorPair<'static>>,
    options: csync_tls_options,
    fingerprint: CString,
    version: CString,
    suite: CString,
    error: CString,
}

/// The largest object there is.
const LARGEST: usize = isize::MAX as usize;

/// What a member of csync_tls_options means.
fn limit_of(milliseconds: c_uint, usual: Duration) -> Option<Duration> {
    match milliseconds {
        0 => Some(usual),
        c_uint::MAX => None,
        milliseconds => Some(Duration::from_millis(milliseconds.into())),
    }
}

fn status_of(reason: Reason) -> csync_status {
    match reason {
        Reason::Identity => CSYNC_E_IDENTITY,
        Reason::Peer => CSYNC_E_PEER,
        Reason::Format => CSYNC_E_FORMAT,
        Reason::Connection | Reason::Truncated => CSYNC_E_CONNECTION,
        Reason::Timeout => CSYNC_E_TIMEOUT,
        Reason::Exhausted | Reason::State => CSYNC_E_STATE,
        Reason::Internal => CSYNC_E_INTERNAL,
    }
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

impl csync_tls_options {
    /// Passes a message to the program; an empty one is none.
    fn tell(&self, level: c_int, message: &str) {
        if let (Some(log), false) = (self.log, message.is_empty()) {
            // SAFETY: the program's own userdata, and a string that ends in NUL and outlives the call.
            unsafe { log(self.userdata, level, c_string(message).as_ptr()) };
        }
    }
}

impl csync_tls_config {
    /// Keeps an error for csync_tls_config_error() and returns its status.
    fn fail(&mut self, status: csync_status, text: &str) -> csync_status {
        self.error = c_string(text);
        status
    }
}

/// Makes a session and hands it out.
///
/// # Safety
/// As csync_tls_client().
unsafe fn make(
    config: *const csync_tls_config,
    role: Role,
    input: c_int,
    output: c_int,
    out: *mut *mut csync_tls,
) -> csync_status {
    if out.is_null() {
        return CSYNC_E_ARGUMENT;
    }
    // SAFETY: not null, and the caller says it is valid for a write.
    unsafe { *out = std::ptr::null_mut() };
    // SAFETY: the caller's clause.
    let config = unsafe { config.as_ref() };
    let Some((options, configuration)) =
        config.and_then(|config| Some((config.options, config.configuration.as_ref()?)))
    else {
        return CSYNC_E_ARGUMENT;
    };
    if input < 0 || output < 0 {
        return CSYNC_E_ARGUMENT;
    }
    // SAFETY: not negative, and the caller keeps it open.
    let input = unsafe { BorrowedFd::borrow_raw(input) };
    // SAFETY: likewise.
    let output = unsafe { BorrowedFd::borrow_raw(output) };
    let Ok(pair) = DescriptorPair::new(input, output, false) else {
        return CSYNC_E_ARGUMENT;
    };
    let begin = AssertUnwindSafe(|| Session::new(configuration, role, pair));
    let Ok(Ok(session)) = quietly(|| catch_unwind(begin)) else {
        return CSYNC_E_INTERNAL;
    };
    let tls = Box::new(csync_tls {
        session,
        options,
        fingerprint: CString::default(),
        version: CString::default(),
        suite: CString::default(),
        error: CString::default(),
    });
    // SAFETY: as above.
    unsafe { *out = Box::into_raw(tls) };
    CSYNC_OK
}

/// A string of a session's; empty for a null pointer.
///
/// # Safety
/// `tls` is null or a session that no call is under way on.
unsafe fn string_of(tls: *const csync_tls, pick: impl Fn(&csync_tls) -> &CString) -> *const c_char {
    // SAFETY: the caller's clause.
    match unsafe { tls.as_ref() } {
        Some(tls) => pick(tls).as_ptr(),
        None => c"".as_ptr(),
    }
}

impl csync_tls {
    /// Runs a call: no panic and no signal gets out, and its error is kept.
    fn run<T>(
        &mut self,
        step: &str,
        body: impl FnOnce(&mut Session<DescriptorPair<'static>>) -> io::Result<T>,
    ) -> Result<T, Failure> {
        let session = &mut self.session;
        let _no_sigpipe = session.inner().may_raise_sigpipe().then(NoSigpipe::new);
        let guarded = AssertUnwindSafe(|| body(session));
        let failure = match quietly(|| catch_unwind(guarded)) {
            Ok(Ok(value)) => {
                if !self.error.is_empty() {
                    self.error = CString::default();
                }
                return Ok(value);
            }
            Ok(Err(error)) => Failure::of(&error),
            Err(panic) => {
                let failure = Failure::new(Reason::Internal, panic_text(panic.as_ref()));
                self.session.give_up(failure.clone());
                failure
            }
        };
        self.error = c_string(&format!("{step}: {failure}"));
        Err(failure)
    }

    /// Runs a call that answers as read(2) and write(2) do.
    fn answer(
        &mut self,
        step: &str,
        body: impl FnOnce(&mut Session<DescriptorPair<'static>>) -> io::Result<libc::ssize_t>,
    ) -> libc::ssize_t {
        match self.run(step, body) {
            Ok(count) => count,
            Err(failure) => {
                set_errno(failure.errno);
                -1
            }
        }
    }

    /// Answers a call with an argument that is not allowed.
    fn refuse(&mut self, why: &str) -> libc::ssize_t {
        self.error = c_string(why);
        set_errno(libc::EINVAL);
        -1
    }

    /// After the handshake.
    fn remember_peer(&mut self) {
        let Some(peer) = self.session.peer() else {
            return;
        };
        self.fingerprint = c_string(&peer.fingerprint);
        self.version = c_string(peer.version);
        self.suite = c_string(&peer.suite);
        match peer.key {
            KeyKind::Rsa(bits) if bits < GOOD_RSA => self.options.tell(
                1,
                &format!(
                    "WARNING: the peer's key, {}, is within reach of those who break keys",
                    peer.key
                ),
            ),
            _ => {}
        }
    }
}

/// The transport of an engine over a session.
struct OverTls(*mut csync_tls);

impl OverTls {
    fn session(&mut self) -> &mut Session<DescriptorPair<'static>> {
        // SAFETY: not null, as csync_engine_over_tls has seen; its caller frees the session after the engine, and makes
        // no other call on it meanwhile.
        let tls = unsafe { &mut *self.0 };
        &mut tls.session
    }
}

impl Transport for OverTls {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.session().read(buf)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.session().write(bytes)
    }

    fn max_payload(&self) -> Option<NonZeroUsize> {
        None
    }

    fn flush(&mut self) -> io::Result<()> {
        self.session().flush()
    }

    fn wait(&mut self, direction: Direction, refusals: u32, limit: Duration) {
        self.session().wait(direction, refusals, limit);
    }

    fn taken_early(&self) -> u64 {
        // SAFETY: as in session().
        let tls = unsafe { &*self.0 };
        tls.session.taken_early()
    }
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
    if out.is_null() {
        return CSYNC_E_ARGUMENT;
    }
    // SAFETY: not null, and the caller says it is valid for a write.
    unsafe { *out = std::ptr::null_mut() };
    let options = if options.is_null() {
        // SAFETY: zeroes are valid for every member: numbers, a null pointer, and no function.
        Some(unsafe { std::mem::zeroed::<csync_tls_options>() })
    } else {
        // SAFETY: the caller's clause; all members may be zero.
        unsafe { pointer::versioned(options) }
    };
    let Some(options) = options else {
        return CSYNC_E_ARGUMENT;
    };
    let versions = match options.version {
        0 => Versions::Both,
        12 => Versions::Tls12,
        13 => Versions::Tls13,
        _ => return CSYNC_E_ARGUMENT,
    };
    let config = Box::new(csync_tls_config {
        options,
        versions,
        configuration: None,
        error: CString::default(),
    });
    // SAFETY: as above.
    unsafe { *out = Box::into_raw(config) };
    CSYNC_OK
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
    // SAFETY: the caller's clause.
    let Some(config) = (unsafe { config.as_mut() }) else {
        return CSYNC_E_ARGUMENT;
    };
    if certificate.is_null() || key.is_null() {
        return config.fail(CSYNC_E_ARGUMENT, "no path of a certificate, or of a key");
    }
    // SAFETY: the caller's clause.
    let certificate = unsafe { pointer::path(certificate) };
    // SAFETY: the caller's clause.
    let key = unsafe { pointer::path(key) };
    let versions = config.versions;
    let load = AssertUnwindSafe(|| {
        let identity = Identity::load(&certificate, &key)
            .map_err(|error| (CSYNC_E_FILE, error.to_string()))?;
        let configuration = Configuration::new(&identity, versions)
            .map_err(|error| (CSYNC_E_INTERNAL, error.to_string()))?;
        Ok((configuration, identity.warning))
    });
    let loaded = quietly(|| catch_unwind(load))
        .unwrap_or_else(|panic| Err((CSYNC_E_INTERNAL, panic_text(panic.as_ref()))));
    match loaded {
        Ok((configuration, warning)) => {
            config.configuration = Some(configuration);
            config
                .options
                .tell(0, warning.as_deref().unwrap_or_default());
            config.fail(CSYNC_OK, "")
        }
        Err((status, text)) => config.fail(status, &text),
    }
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
    // SAFETY: the caller's clause.
    match unsafe { config.as_ref() } {
        Some(config) => config.error.as_ptr(),
        None => c"".as_ptr(),
    }
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
    if !config.is_null() {
        // SAFETY: made by Box::into_raw in csync_tls_config_new, and the caller gives it up.
        drop(unsafe { Box::from_raw(config) });
    }
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
/// Returns: CSYNC_OK, CSYNC_E_ARGUMENT, or CSYNC_E_INTERNAL.
///
/// Errors: CSYNC_E_ARGUMENT for a configuration that is NULL or not loaded, a descriptor that is not open, or not for
/// reading or writing, a socket or a pipe that is not a stream, a NULL `out`; CSYNC_E_INTERNAL where the system gives no
/// random numbers.
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
    // SAFETY: the caller's clause.
    unsafe { make(config, Role::Client, input, output, out) }
}

/// Makes the server's side of a session; the rest is as for csync_tls_client().
///
/// @param config the configuration, loaded; may be freed at any time after this.
/// @param input read from; stays the caller's, who closes it after csync_tls_free().
/// @param output written to; may be the same, likewise the caller's.
/// @param out set to the session, or to NULL on errors.
///
/// Returns: CSYNC_OK, CSYNC_E_ARGUMENT, or CSYNC_E_INTERNAL. Errors: as csync_tls_client().
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
    // SAFETY: the caller's clause.
    unsafe { make(config, Role::Server, input, output, out) }
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
    // SAFETY: the caller's clause.
    let Some(tls) = (unsafe { tls.as_mut() }) else {
        return CSYNC_E_ARGUMENT;
    };
    if tls.session.is_open() {
        return CSYNC_OK;
    }
    let limit = limit_of(tls.options.handshake_limit, HANDSHAKE_LIMIT);
    match tls.run("TLS handshake", |session| tls::handshake(session, limit)) {
        Ok(()) => {
            tls.remember_peer();
            CSYNC_OK
        }
        Err(failure) => status_of(failure.reason),
    }
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
    // SAFETY: the caller's clause.
    let tls = unsafe { tls.as_ref() };
    let certificate = tls
        .and_then(|tls| tls.session.peer())
        .map(|peer| peer.certificate.as_slice());
    if !length.is_null() {
        // SAFETY: not null, and the caller says it is valid for a write.
        unsafe { *length = certificate.map_or(0, <[u8]>::len) };
    }
    certificate.map_or(std::ptr::null(), <[u8]>::as_ptr)
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
    // SAFETY: the caller's clause.
    unsafe { string_of(tls, |tls| &tls.fingerprint) }
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
    // SAFETY: the caller's clause.
    unsafe { string_of(tls, |tls| &tls.version) }
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
    // SAFETY: the caller's clause.
    unsafe { string_of(tls, |tls| &tls.suite) }
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
    // SAFETY: the caller's clause.
    let Some(tls) = (unsafe { tls.as_mut() }) else {
        set_errno(libc::EINVAL);
        return -1;
    };
    if buffer.is_null() && count > 0 {
        return tls.refuse("no buffer to read into");
    }
    let buf: &mut [u8] = match count {
        0 => &mut [],
        // SAFETY: not null, and the caller says it is valid for so many bytes; no object is larger than isize::MAX.
        _ => unsafe { std::slice::from_raw_parts_mut(buffer.cast(), count.min(LARGEST)) },
    };
    let limit = limit_of(tls.options.silence_limit, SILENCE_LIMIT);
    tls.answer("reading", |session| {
        Ok(tls::read(session, buf, limit)? as libc::ssize_t)
    })
}

/// Writes all of it. Small pieces are gathered, and go out in full records when 64 KiB are there, and with the next
/// csync_tls_read(), csync_tls_flush(), or csync_tls_close(). Ahead of waiting for anything else (another descriptor, a
/// child, a lock), call csync_tls_flush(). While it waits nothing is read: two sides that both write more than the
/// connection holds, and read only then, wait for each other until the time limit (an engine over the session does not).
///
/// @param tls the session, after its handshake.
/// @param buffer what is written.
/// @param count the number of bytes.
///
/// Returns: `count`, or -1 with errno and csync_tls_error(); how much has arrived is not known then.
///
/// Errors: as csync_tls_read(); EPIPE where the peer has closed the connection; EOVERFLOW where
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
    // SAFETY: the caller's clause.
    let Some(tls) = (unsafe { tls.as_mut() }) else {
        set_errno(libc::EINVAL);
        return -1;
    };
    if (buffer.is_null() && count > 0) || count > LARGEST {
        return tls.refuse("no bytes to write");
    }
    let bytes: &[u8] = match count {
        0 => &[],
        // SAFETY: not null, and the caller says it is valid for so many bytes.
        _ => unsafe { std::slice::from_raw_parts(buffer.cast(), count) },
    };
    let limit = limit_of(tls.options.silence_limit, SILENCE_LIMIT);
    tls.answer("writing", |session| {
        tls::write(session, bytes, limit)?;
        Ok(count as libc::ssize_t)
    })
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
    // SAFETY: the caller's clause.
    let Some(tls) = (unsafe { tls.as_mut() }) else {
        set_errno(libc::EINVAL);
        return -1;
    };
    let limit = limit_of(tls.options.silence_limit, SILENCE_LIMIT);
    match tls.answer("writing", |session| tls::flush(session, limit).map(|()| 0)) {
        0 => 0,
        _ => -1,
    }
}

/// How many bytes csync_tls_read() would return without looking at the descriptor: ask ahead of a poll(2) on it.
///
/// @param tls the session.
///
/// Returns: the number; 1 where it would return the end or an error at once; 0 where it would look at the descriptor,
/// before the handshake, after an error that was returned, and for NULL.
/// Errors: none.
///
/// # Safety
/// `tls` is NULL or a session that no other call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_pending(tls: *mut csync_tls) -> usize {
    // SAFETY: the caller's clause.
    let Some(tls) = (unsafe { tls.as_mut() }) else {
        return 0;
    };
    tls.run("reading", |session| Ok(session.pending()))
        .unwrap_or(0)
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
    // SAFETY: the caller's clause.
    let Some(tls) = (unsafe { tls.as_mut() }) else {
        set_errno(libc::EINVAL);
        return -1;
    };
    match tls.answer("closing", |session| tls::close(session).map(|()| 0)) {
        0 => 0,
        _ => -1,
    }
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
    // SAFETY: the caller's clause.
    unsafe { string_of(tls, |tls| &tls.error) }
}

/// Frees a session. Nothing is sent, and nothing is closed.
///
/// @param tls NULL is allowed.
///
/// Returns: nothing. Errors: none.
///
/// # Safety
/// `tls` is NULL or a session that is not freed yet, that no call is under way on, and that no engine uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_tls_free(tls: *mut csync_tls) {
    if !tls.is_null() {
        // SAFETY: made by Box::into_raw in make, and the caller gives it up.
        drop(unsafe { Box::from_raw(tls) });
    }
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
    // SAFETY: the caller's clause.
    unsafe { clear(out) };
    // SAFETY: the caller's clause.
    let options = unsafe { options_of(options) };
    // SAFETY: the caller's clause.
    let is_open = unsafe { tls.as_ref() }.is_some_and(|tls| tls.session.is_open());
    let transport = is_open.then(|| -> Box<dyn Transport> { Box::new(OverTls(tls)) });
    // SAFETY: the caller's clause.
    unsafe { hand_out(transport, options, out) }
}
