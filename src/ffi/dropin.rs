//! The functions of csync2's `rsync.c`, with its prototypes and its bytes on the wire.
//!
//! An exported function converts, calls, converts. The header is made from these comments.

use super::guard::{guard, set_errno};
use super::host::{self, HostLog, HostTransport};
use super::pointer;
use super::stdio::{Stream, into_stream};
use crate::engine::{self, Comparison, Error, Log, Session, Signed};
use crate::files;
use rustix::fs::Mode;
use rustix::io::Errno;
use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The largest piece that is handed to `conn_write`, in bytes: the most that one TLS record carries.
#[allow(dead_code)] // for C alone: Rust 1.85 does not take the assertion for a use
pub const CSYNC_CHUNK: usize = 16384;

const _: () = assert!(CSYNC_CHUNK == crate::transport::CSYNC_CHUNK);

/// Whether new files are synced to the disk: see [`csync_rs_fsync`].
static SYNC: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What the last signature on this thread was made of. The daemon calls `csync_rs_sig` and `csync_rs_patch` one
    /// after the other, on one connection.
    static SIGNED: RefCell<Option<Signed>> = const { RefCell::new(None) };
}

/// Calls a verb on the host's connection.
fn with_session<T>(verb: impl FnOnce(&mut Session<'_>) -> Result<T, Error>) -> Result<T, Error> {
    verb(&mut Session {
        transport: &mut HostTransport,
        log: &HostLog,
        settings: host::settings(SYNC.load(Ordering::Relaxed)),
    })
}

/// Announces the content of a stream to the peer and sends it: `octet-stream N`, then N bytes, in writes of at
/// most CSYNC_CHUNK bytes.
///
/// @param in an open stream, sent from its first byte to its last wherever its position is; a stream that
///   cannot seek, and NULL, are answered with `ERROR`. Its position is at its end afterwards.
///
/// Returns: nothing.
///
/// Errors: what goes wrong is logged at level 0. A lost connection shows at the caller's next read. Where the
/// stream fails after its length was announced, the payload cannot be completed: the connection is closed
/// (`conn_close`) and `csync_fatal` called.
///
/// # Safety
/// `in` is NULL or an open stream that no other thread uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_send_file(r#in: *mut libc::FILE) {
    let name = Path::new("(stream)");
    let in_step = guard("csync_send_file", name, true, || {
        // SAFETY: the caller's clause.
        let stream = unsafe { Stream::new(r#in) };
        with_session(|session| match send_stream(session, stream) {
            Err(error @ Error::Unfinished(_)) => {
                HostLog.log(0, &format!("ERROR: {error} in csync_send_file."));
                Ok(false)
            }
            sent => sent.map(|()| true),
        })
    });
    if !in_step {
        host::close_and_end(c"Read-error while sending data; the connection is closed.");
    }
}

/// A stream and the regular file behind it, if there is one; NULL is no stream.
fn opened(stream: Option<Stream>) -> io::Result<(Stream, Option<ManuallyDrop<File>>)> {
    let stream = stream.ok_or(Errno::INVAL)?;
    let file = stream.regular_file()?;
    Ok((stream, file))
}

fn send_stream(session: &mut Session<'_>, stream: Option<Stream>) -> Result<(), Error> {
    let measured = opened(stream).and_then(|(stream, file)| {
        let length = match &file {
            Some(file) => file.metadata()?.len(),
            None => stream.length()?,
        };
        Ok((stream, file, length))
    });
    let (mut stream, file, length) = match measured {
        Ok(measured) => measured,
        Err(error) => {
            let error = Error::file("finding the length of a stream", error);
            return engine::refuse(session, error);
        }
    };
    match &file {
        Some(file) => {
            engine::send_file(session, file, length)?;
            let _ = stream.to_end();
            Ok(())
        }
        None => {
            stream.rewind();
            engine::send(session, &mut stream, length)
        }
    }
}

/// Receives one payload from the peer and writes it to a stream, which is flushed and rewound.
///
/// @param out an open stream; the payload is written at its position.
///
/// Returns: 0, or -1 with errno set.
///
/// Errors: EIO where the peer reports an error or sends something else than a header; ECONNRESET or the
/// connection's own errno where it is lost; EINVAL for NULL; else what writing said (ENOSPC, EFBIG, ...). The
/// payload has been read to its end after every error but a lost connection, so that the next command finds both
/// ends in step.
///
/// # Safety
/// `out` is NULL or an open stream that no other thread uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_recv_file(out: *mut libc::FILE) -> c_int {
    guard("csync_recv_file", Path::new("(stream)"), -1, || {
        // SAFETY: the caller's clause.
        let stream = unsafe { Stream::new(out) };
        with_session(|session| receive_stream(session, stream)).map(|()| 0)
    })
}

fn receive_stream(session: &mut Session<'_>, stream: Option<Stream>) -> Result<(), Error> {
    match opened(stream) {
        Ok((stream, Some(file))) => {
            let mut file: &File = &file;
            engine::recv(session, &mut file)?;
            stream.rewind();
        }
        Ok((mut stream, None)) => {
            engine::recv(session, &mut stream)?;
            stream.rewind();
        }
        Err(error) => {
            engine::recv(session, &mut io::sink())?;
            return Err(Error::file("preparing a stream for received data", error));
        }
    }
    Ok(())
}

/// Makes the signature of a file: MD4, rollsum, blocks of 2048 bytes, sums of 16, byte for byte that of
/// `rdiff signature -H md4 -R rollsum -b 2048 -S 16`.
///
/// Here and in csync_rs_sig() and csync_rs_check(), a file of 16 MiB or more is hashed by as many threads as the machine
/// has for this process (its affinity and its cgroup counted), 4 at most. They live within the call, take no signals and
/// call none of the host's functions; where the system has none, the calling one does it all.
///
/// @param filename the file, with csync2's `%prefix%`; not followed where it is a symbolic link.
/// @param sig_file_out set to a stream over an unnamed file with the signature, positioned at its end, for the
///   caller to close; to NULL where the file does not exist, and on errors.
///
/// Returns: 0, or -1 with errno set.
///
/// Errors: ELOOP for a symbolic link, EISDIR for a directory, EINVAL for another file that is not regular and for a
/// NULL `sig_file_out`, else what opening, reading, or writing in the temporary directory said.
///
/// # Safety
/// `filename` is NULL or a string that ends in NUL; `sig_file_out` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_sigfile(
    filename: *const c_char,
    sig_file_out: *mut *mut libc::FILE,
) -> c_int {
    if sig_file_out.is_null() {
        set_errno(libc::EINVAL);
        return -1;
    }
    // SAFETY: not null, and the caller says it is valid for a write.
    unsafe { *sig_file_out = std::ptr::null_mut() };
    // SAFETY: the caller's clause.
    let path = unsafe { host::local_path(filename) };
    guard("csync_rs_sigfile", &path, -1, || {
        if let Some(stream) = signature_stream(&path)? {
            // SAFETY: as above.
            unsafe { *sig_file_out = stream };
        }
        Ok(0)
    })
}

fn signature_stream(path: &Path) -> Result<Option<*mut libc::FILE>, Error> {
    let opened = files::open_regular(path)
        .map_err(|error| Error::file("opening the file for its signature", error))?;
    let Some(basis) = opened else {
        return Ok(None);
    };
    let write = || {
        let mut out =
            BufWriter::with_capacity(64 * 1024, files::work_file(host::temp_dir().as_deref())?);
        engine::write_signature(&basis, host::threads(), &mut out)?;
        out.flush()?;
        into_stream(out.into_inner().map_err(io::IntoInnerError::into_error)?)
    };
    let stream = write().map_err(|error| Error::file("making the signature file", error))?;
    Ok(Some(stream.as_ptr()))
}

/// Reads the peer's signature and compares the local file with it as it arrives. The peer's own block length, sum
/// length and kinds of sums are used.
///
/// @param filename the local file, with csync2's `%prefix%`; not followed where it is a symbolic link.
/// @param isreg 0 where the file is not regular: it then equals an empty payload.
///
/// Returns: 0 for equal, 1 for different, -1 with errno set.
///
/// Errors: only a lost connection is -1 (ECONNRESET or the connection's own errno). A local file that cannot be
/// read, `octet-stream -1`, `ERROR` and any other line in place of the header are logged and return 1: a status line
/// follows, and only a caller that goes on to read it stays in step.
///
/// # Safety
/// `filename` is NULL (as an empty name) or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_check(filename: *const c_char, isreg: c_int) -> c_int {
    // SAFETY: the caller's clause.
    let path = unsafe { host::local_path(filename) };
    guard("csync_rs_check", &path, -1, || {
        let found = with_session(|session| engine::check(session, &path, isreg != 0))?;
        Ok(c_int::from(found == Comparison::Differs))
    })
}

/// Sends the signature of a file to the peer, as one payload.
///
/// @param filename the file, with csync2's `%prefix%`; not followed where it is a symbolic link. For one that does
///   not exist the signature of nothing is sent.
///
/// Returns: nothing.
///
/// Errors: logged at level 0. Where the file cannot be read, the peer gets the signature of an empty file in its
/// place (no failure word is understood here by every peer), and the csync_rs_patch() of the same file that
/// follows returns -1 with the errno. A lost connection shows at the caller's next read.
///
/// # Safety
/// `filename` is NULL (as an empty name) or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_sig(filename: *const c_char) {
    // SAFETY: the caller's clause.
    let path = unsafe { host::local_path(filename) };
    guard("csync_rs_sig", &path, (), || {
        SIGNED.set(None);
        let signed = with_session(|session| engine::signature(session, &path))?;
        SIGNED.set(Some(signed));
        Ok(())
    });
}

/// Reads the peer's signature and sends the delta from the peer's version of a file to ours.
///
/// @param filename the local file, with csync2's `%prefix%`; not followed where it is a symbolic link.
///
/// Returns: 0, or -1 with errno set.
///
/// Errors: after every error but a lost connection the peer's signature has been read and exactly one thing was
/// sent, a delta or `ERROR`; the peer answers either with a status line. ENOENT, EACCES, ELOOP, EISDIR, EINVAL, ...:
/// the file cannot be opened as a regular file. EIO: it cannot be read, or the peer reports an error. EBADMSG: the
/// peer's signature breaks the format. ENOMEM: its index does not fit the memory. EAGAIN: the file changed while it
/// was read; what was read has been sent (or, where the file became shorter, a delta that the peer refuses), and the
/// file must be tried again. ECONNRESET, or the connection's own errno: it is lost.
///
/// # Safety
/// `filename` is NULL (as an empty name) or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_delta(filename: *const c_char) -> c_int {
    // SAFETY: the caller's clause.
    let path = unsafe { host::local_path(filename) };
    guard("csync_rs_delta", &path, -1, || {
        with_session(|session| engine::delta(session, &path)).map(|()| 0)
    })
}

/// Reads the peer's delta and replaces a file by what the delta makes of it: the new file is complete, and on the
/// disk where csync_rs_fsync() says so, before it takes the old one's name. It gets the old one's owner, mode, ACL,
/// extended attributes and security label, as far as they can be set; a file that did not exist gets mode 0600.
///
/// @param filename the local file, with csync2's `%prefix%`; not followed where it is a symbolic link.
///
/// Returns: 0, or -1 with errno set.
///
/// Errors: after every error the old file is as it was and nothing of the new one is left; after every error but a
/// lost connection the whole delta has been read. EAGAIN: the file changed, appeared or vanished since its signature
/// was sent. EBADMSG: the delta is corrupt. EIO: the peer reports an error. ENOENT: there is no such directory.
/// EISDIR, ELOOP, EINVAL, EACCES, ...: the file to be patched cannot be read as a regular file. ENOSPC, EDQUOT,
/// EFBIG, ...: what writing said. ECONNRESET, or the connection's own errno: it is lost.
///
/// # Safety
/// `filename` is NULL (as an empty name) or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_patch(filename: *const c_char) -> c_int {
    // SAFETY: the caller's clause.
    let path = unsafe { host::local_path(filename) };
    guard("csync_rs_patch", &path, -1, || {
        let signed = SIGNED.take();
        with_session(|session| engine::patch(session, &path, signed)).map(|()| 0)
    })
}

/// Says whether csync_rs_patch() brings a new file, and its name, to the disk before it returns, so that a power
/// failure cannot leave an empty or short file. Off by default: it costs a disk's write latency for each file.
///
/// @param enable 0 for no, anything else for yes; holds for the whole process.
///
/// Returns: the setting before, 0 or 1. Errors: none. Safety: may be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn csync_rs_fsync(enable: c_int) -> c_int {
    c_int::from(SYNC.swap(enable != 0, Ordering::Relaxed))
}

/// Makes every missing directory above the last component of a path.
///
/// @param path a path to a file that is to be created; with a slash at its end, all of it is made.
/// @param mode the mode of new directories (less the umask); 0 stands for 0700.
///
/// Returns: 0, or -1 with errno set.
///
/// Errors: EINVAL for NULL; ENOTDIR where a parent exists and is not a directory; ENAMETOOLONG; else what mkdir said.
/// Directories that were made before the error stay.
///
/// # Safety
/// `path` is NULL or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkpath(path: *const c_char, mode: libc::mode_t) -> c_int {
    if path.is_null() {
        set_errno(libc::EINVAL);
        return -1;
    }
    // SAFETY: the caller's clause.
    let path = unsafe { pointer::path(path) };
    let mode = match mode {
        0 => Mode::RWXU,
        mode => Mode::from_raw_mode(mode),
    };
    guard("mkpath", &path, -1, || {
        files::make_parents(&path, mode)
            .map_err(|error| Error::file("making the directories above", error))?;
        Ok(0)
    })
}

/// Splits a path at its last slash.
///
/// | filepath | dirname | basename |
/// | --- | --- | --- |
/// | `/` | `/` | |
/// | `/foo` | `/` | `foo` |
/// | `/some/path/` | `/some/path` | |
/// | `foo` | | `foo` |
///
/// @param dirname NULL, or room for the part before the slash: strlen(filepath) + 1 bytes are enough for any path.
/// @param basename NULL, or room for the part behind it: likewise.
/// @param filepath the path; NULL is taken as the empty path.
///
/// Returns: nothing. Errors: none.
///
/// # Safety
/// `filepath` is NULL or a string that ends in NUL; `dirname` and `basename` are NULL or valid for writes of the
/// lengths said; none of the three overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn split_dirname_basename(
    dirname: *mut c_char,
    basename: *mut c_char,
    filepath: *const c_char,
) {
    // SAFETY: the caller's clause.
    let path = unsafe { pointer::bytes(filepath) };
    let (directory, name) = files::split(&path);
    // SAFETY: the caller gives room for the whole path and its NUL, and a part is not longer.
    unsafe { pointer::write_string(dirname, directory) };
    // SAFETY: likewise.
    unsafe { pointer::write_string(basename, name) };
}

/// Makes a new file with a name of its own, as mkstemp, and with a mode of the caller's. The descriptor is closed
/// on exec.
///
/// @param template ends in `XXXXXX`, which is replaced.
/// @param perms the file's mode, whatever the umask; the owner's write bit is added.
///
/// Returns: a descriptor open for reading and writing, or -1 with errno set and no file made.
///
/// Errors: EINVAL for NULL and for a template that does not end in `XXXXXX`; else what mkstemp or fchmod said.
///
/// # Safety
/// `template` is NULL or a string that ends in NUL and may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn do_mkstemp(template: *mut c_char, perms: libc::mode_t) -> c_int {
    if template.is_null() {
        set_errno(libc::EINVAL);
        return -1;
    }
    // SAFETY: the caller's clause.
    let descriptor = unsafe { libc::mkostemp(template, libc::O_CLOEXEC) };
    if descriptor < 0 {
        return -1;
    }
    // SAFETY: a descriptor that was just opened.
    if unsafe { libc::fchmod(descriptor, perms | libc::S_IWUSR) } == 0 {
        return descriptor;
    }
    let errno = io::Error::last_os_error().raw_os_error();
    // SAFETY: open, and not used after this.
    unsafe { libc::close(descriptor) };
    // SAFETY: mkostemp has written the name of the file there.
    unsafe { libc::unlink(template) };
    set_errno(errno.unwrap_or(libc::EIO));
    -1
}
