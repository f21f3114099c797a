//! The verbs of the engine's interface.

use super::engine::csync_engine;
use super::options::csync_verb;
use super::pointer;
use super::status::csync_status::{self, *};
use crate::engine::{self, Comparison, Error, Session, Signed, Sink};
use crate::transport::Output;
use rustix::io::Errno;
use std::ffi::{c_char, c_int};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{BorrowedFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The arguments of a verb for a file name; `None` for null pointers.
///
/// # Safety
/// `engine` is null or an engine that is not freed during `'e`; `path` is null or a string that ends in NUL.
unsafe fn arguments<'e>(
    engine: *const csync_engine,
    path: *const c_char,
) -> (Option<&'e csync_engine>, Option<PathBuf>) {
    // SAFETY: the caller's clause.
    let engine = unsafe { csync_engine::of(engine) };
    if path.is_null() {
        return (engine, None);
    }
    // SAFETY: the caller's clause.
    (engine, Some(unsafe { pointer::path(path) }))
}

/// Runs a verb for a file name.
fn for_path(
    engine: Option<&csync_engine>,
    verb: csync_verb,
    path: Option<PathBuf>,
    body: impl FnOnce(&mut Session<'_>, &mut Option<Signed>, &Path) -> Result<(), Error>,
) -> csync_status {
    let Some(engine) = engine else {
        return CSYNC_E_ARGUMENT;
    };
    let Some(path) = path else {
        return engine.refuse("the path is NULL");
    };
    let result = engine.run(verb, &path, |session, signed| body(session, signed, &path));
    result.err().unwrap_or(CSYNC_OK)
}

/// The file behind a descriptor of the caller's, which is not closed.
fn borrowed_file(descriptor: c_int) -> io::Result<ManuallyDrop<File>> {
    if descriptor < 0 {
        return Err(Errno::BADF.into());
    }
    // SAFETY: not -1; never closed through this value, which is not dropped.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }))
}

/// A descriptor of the caller's that takes received content.
struct Receiver<'fd>(Output<'fd>);

impl Sink for Receiver<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, limit: Duration) -> bool {
        self.0.wait(limit);
        true
    }
}

/// Sends the content of a file: `octet-stream N`, then its N bytes.
///
/// @param engine the engine.
/// @param descriptor a regular file, open for reading; sent from its start wherever its position is, which is left.
///
/// Returns: CSYNC_OK or an error. CSYNC_E_FILE: where nothing had been sent the peer got `ERROR`, and both ends are in
/// step; where the file failed in the middle, the engine cannot be used again, and the connection must be closed.
///
/// # Safety
/// `engine` is NULL or an engine that is not freed meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_send(
    engine: *mut csync_engine,
    descriptor: c_int,
) -> csync_status {
    let name = Path::new("(descriptor)");
    // SAFETY: the caller's clause.
    let Some(engine) = (unsafe { csync_engine::of(engine) }) else {
        return CSYNC_E_ARGUMENT;
    };
    let result = engine.run(csync_verb::CSYNC_SEND, name, |session, _| {
        let opened = borrowed_file(descriptor).and_then(|file| {
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(Errno::INVAL.into());
            }
            Ok((file, metadata.len()))
        });
        match opened {
            Ok((file, length)) => engine::send_file(session, &file, length),
            Err(error) => engine::refuse(
                session,
                Error::file("finding the length of the file", error),
            ),
        }
    });
    result.err().unwrap_or(CSYNC_OK)
}

/// Receives content and writes it to a descriptor, at its position.
///
/// @param engine the engine.
/// @param descriptor open for writing. Blocking or not, one that takes nothing now (a full pipe) is waited for without
///   waiting in a write: the call can be cancelled, and ends with CSYNC_E_FILE and ETIMEDOUT after the silence limit.
/// @param length NULL, or set to the number of bytes received.
///
/// Returns: CSYNC_OK or an error. After CSYNC_E_FILE (and every error but a lost connection and CSYNC_E_CANCELLED) all of
/// the payload has been read, and both ends are in step.
///
/// # Safety
/// `engine` is NULL or an engine that is not freed meanwhile; `length` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_receive(
    engine: *mut csync_engine,
    descriptor: c_int,
    length: *mut u64,
) -> csync_status {
    let name = Path::new("(descriptor)");
    // SAFETY: the caller's clause.
    let Some(engine) = (unsafe { csync_engine::of(engine) }) else {
        return CSYNC_E_ARGUMENT;
    };
    let result = engine.run(csync_verb::CSYNC_RECEIVE, name, |session, _| {
        // SAFETY: not -1, and the caller keeps it open, if it is.
        let output = (descriptor >= 0).then(|| unsafe { BorrowedFd::borrow_raw(descriptor) });
        let output = output.ok_or(Errno::BADF.into()).and_then(Output::new);
        match output {
            Ok(output) => engine::recv(session, &mut Receiver(output)),
            Err(error) => {
                engine::recv(session, &mut io::sink())?;
                Err(Error::file("writing received data", error))
            }
        }
    });
    match result {
        Ok(received) => {
            if !length.is_null() {
                // SAFETY: not null, and the caller says it is valid for a write.
                unsafe { *length = received };
            }
            CSYNC_OK
        }
        Err(status) => status,
    }
}

/// Sends the signature of a file, for a peer that checks or makes a delta. A file that does not exist has the signature
/// of nothing.
///
/// @param engine the engine.
/// @param path the file; not followed where it is a symbolic link.
///
/// Returns: CSYNC_OK or an error. CSYNC_E_FILE: the file cannot be read, the peer got the signature of nothing, and
/// csync_engine_patch() of this file will read the delta and fail; both ends are in step.
///
/// # Safety
/// `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_signature(
    engine: *mut csync_engine,
    path: *const c_char,
) -> csync_status {
    // SAFETY: the caller's clause.
    let (engine, path) = unsafe { arguments(engine, path) };
    for_path(
        engine,
        csync_verb::CSYNC_SIGNATURE,
        path,
        |session, signed, path| signed.insert(engine::signature(session, path)?).readable(),
    )
}

/// Reads the peer's signature and compares a file with it as it arrives.
///
/// @param engine the engine.
/// @param path the file; not followed where it is a symbolic link. One that does not exist equals an empty payload only.
/// @param differs set to 0 for equal and 1 for different; a file that cannot be read, and a peer that reports an error,
///   count as different, with a message in the log.
///
/// Returns: CSYNC_OK or an error; only a lost connection (or an argument) is one.
///
/// # Safety
/// `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL; `differs` is
/// NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_check(
    engine: *mut csync_engine,
    path: *const c_char,
    differs: *mut c_int,
) -> csync_status {
    // SAFETY: the caller's clause.
    let (engine, path) = unsafe { arguments(engine, path) };
    if differs.is_null() {
        let why = "the place for the result is NULL";
        return engine.map_or(CSYNC_E_ARGUMENT, |engine| engine.refuse(why));
    }
    for_path(engine, csync_verb::CSYNC_CHECK, path, |session, _, path| {
        let found = engine::check(session, path, true)?;
        // SAFETY: not null, and the caller says it is valid for a write.
        unsafe { *differs = c_int::from(found == Comparison::Differs) };
        Ok(())
    })
}

/// Reads the peer's signature and sends the delta from the peer's version of a file to ours.
///
/// @param engine the engine.
/// @param path the file; not followed where it is a symbolic link.
///
/// Returns: CSYNC_OK or an error. After every error but a lost connection the peer has got a delta or `ERROR`, and both
/// ends are in step. CSYNC_E_CHANGED: the file changed while it was read; the peer has what was read, or a delta that it
/// refuses.
///
/// # Safety
/// `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_delta(
    engine: *mut csync_engine,
    path: *const c_char,
) -> csync_status {
    // SAFETY: the caller's clause.
    let (engine, path) = unsafe { arguments(engine, path) };
    for_path(engine, csync_verb::CSYNC_DELTA, path, |session, _, path| {
        engine::delta(session, path)
    })
}

/// Reads the peer's delta and replaces a file by what it makes of it, as csync_rs_patch() does.
///
/// @param engine the engine.
/// @param path the file that csync_engine_signature() was called for; not followed where it is a symbolic link.
///
/// Returns: CSYNC_OK or an error. After every error the old file is as it was and nothing of the new one is left; after
/// every error but a lost connection the whole delta has been read. CSYNC_E_CHANGED: the file changed since its
/// signature was sent.
///
/// # Safety
/// `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_patch(
    engine: *mut csync_engine,
    path: *const c_char,
) -> csync_status {
    // SAFETY: the caller's clause.
    let (engine, path) = unsafe { arguments(engine, path) };
    for_path(
        engine,
        csync_verb::CSYNC_PATCH,
        path,
        |session, signed, path| engine::patch(session, path, signed.take()),
    )
}

/// Sends a whole file to a peer that calls csync_engine_pull(), as a delta to what it has, and waits for its answer.
///
/// @param engine the engine.
/// @param path the file; not followed where it is a symbolic link.
///
/// Returns: CSYNC_OK: the peer has the file in place. Else an error; CSYNC_E_PEER: the peer could not put it in place.
/// Both ends are in step after each but a lost connection.
///
/// # Safety
/// `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_push(
    engine: *mut csync_engine,
    path: *const c_char,
) -> csync_status {
    // SAFETY: the caller's clause.
    let (engine, path) = unsafe { arguments(engine, path) };
    for_path(engine, csync_verb::CSYNC_PUSH, path, |session, _, path| {
        engine::push(session, path)
    })
}

/// Receives a whole file from a peer that calls csync_engine_push(), as a delta to what is there, and answers it.
///
/// @param engine the engine.
/// @param path where the file is, or is to be; not followed where it is a symbolic link.
///
/// Returns: CSYNC_OK: the file is in place. Else an error, as csync_engine_patch(); the peer has been told, and both
/// ends are in step after each but a lost connection.
///
/// # Safety
/// `engine` is NULL or an engine that is not freed meanwhile; `path` is NULL or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_pull(
    engine: *mut csync_engine,
    path: *const c_char,
) -> csync_status {
    // SAFETY: the caller's clause.
    let (engine, path) = unsafe { arguments(engine, path) };
    for_path(engine, csync_verb::CSYNC_PULL, path, |session, _, path| {
        engine::pull(session, path)
    })
}
