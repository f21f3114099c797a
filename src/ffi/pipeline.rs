//! Requests sent ahead on a connection of the program's own, as patched csync2 does.

use super::guard::{guard, set_errno};
use super::host::{self, judge};
use super::pointer;
use crate::engine::{Error, Pipeline, inert_delta};
use rustix::io::Errno;
use std::ffi::{c_char, c_int, c_void};
use std::io::ErrorKind;
use std::path::Path;

/// Requests that are sent before the answers to earlier ones are there, and whose answer is due next. A peer that
/// handles one request after the other needs to know nothing of it.
///
/// Nothing here waits. Requests are kept, and leave by csync_rs_pipeline_send(), which is to be called whenever an
/// answer is about to be waited for: a caller that waits for input while output is left, and for either, never waits for
/// a peer that waits for it, however small the buffers between the two are.
pub struct csync_pipeline {
    pipeline: Pipeline<Tag>,
}

#[derive(Clone, Copy)]
struct Tag(*mut c_void);

const NAME: &str = "(pipeline)";

/// Makes an empty pipeline.
///
/// @param files how many files may be under way at a time, 1 or more: requests that hold a place.
/// @param bytes how many bytes of requests and answers may be under way when another file is begun.
///
/// Returns: the pipeline, for csync_rs_pipeline_free(), or NULL with errno set.
///
/// Errors: EINVAL where `files` is 0. Safety: may be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn csync_rs_pipeline_new(files: usize, bytes: usize) -> *mut csync_pipeline {
    if files == 0 {
        set_errno(libc::EINVAL);
        return std::ptr::null_mut();
    }
    let pipeline = Pipeline::new(files, bytes as u64);
    Box::into_raw(Box::new(csync_pipeline { pipeline }))
}

/// Frees a pipeline. What has not left is not sent.
///
/// @param pipeline NULL is allowed.
///
/// Returns: nothing. Errors: none.
///
/// # Safety
/// `pipeline` is NULL or one that is not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_pipeline_free(pipeline: *mut csync_pipeline) {
    if !pipeline.is_null() {
        // SAFETY: not null, made by Box::into_raw in csync_rs_pipeline_new, and not freed yet.
        drop(unsafe { Box::from_raw(pipeline) });
    }
}

/// Says whether another file may be begun.
///
/// @param pipeline the pipeline.
/// @param bytes the length of its first request and, estimated, of the answer to it.
///
/// Returns: 1 or 0. There always is room where no answer is due. 0 for NULL. Errors: none.
///
/// # Safety
/// `pipeline` is NULL or one that is not freed yet and used by no other thread meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_pipeline_has_room(
    pipeline: *const csync_pipeline,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller's clause.
    let pipeline = unsafe { pipeline.as_ref() };
    c_int::from(pipeline.is_some_and(|pipeline| pipeline.pipeline.has_room(bytes as u64)))
}

/// Takes a request, to be sent behind all others.
///
/// @param pipeline the pipeline.
/// @param tag says whose request it is; csync_rs_pipeline_due() returns it. Not NULL, and not looked at.
/// @param request one or more lines, with their ends, that are answered together; copied.
/// @param answer the length of the answer in bytes, estimated.
/// @param holds_place 0 where nothing more will be asked for this file: it makes room for another one.
///
/// Returns: 0, or -1 with errno set and nothing taken.
///
/// Errors: EINVAL for a NULL `pipeline`, `tag` or `request`; ENOMEM.
///
/// # Safety
/// As csync_rs_pipeline_has_room(); `request` is NULL or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_pipeline_ask(
    pipeline: *mut csync_pipeline,
    tag: *mut c_void,
    request: *const c_char,
    answer: usize,
    holds_place: c_int,
) -> c_int {
    // SAFETY: the caller's clause.
    let pipeline = unsafe { pipeline.as_mut() };
    guard("csync_rs_pipeline_ask", Path::new(NAME), -1, || {
        let (Some(pipeline), false) = (pipeline, tag.is_null() || request.is_null()) else {
            return Err(Error::file("taking a request", Errno::INVAL));
        };
        // SAFETY: the caller's clause.
        let request = unsafe { pointer::bytes(request) };
        pipeline
            .pipeline
            .ask(Tag(tag), &request, answer as u64, holds_place != 0)
            .map_err(|_| Error::file("taking a request", Errno::NOMEM))?;
        Ok(0)
    })
}

/// Takes a request that announces the delta of a file (csync2's `PATCH`), and that delta right behind it, without having
/// seen the peer's signature: literal bytes alone, right whatever the peer has. A daemon that refuses the request reads
/// the delta as lines; each of them begins with a byte by which no command begins, whatever is in the file, and the
/// first line behind it is lost. So after a refusal nothing is known of what was sent behind it, and the connection is
/// to be ended: by an empty line, `BYE`, and reading to the end. Holds a place.
///
/// @param pipeline the pipeline.
/// @param tag as csync_rs_pipeline_ask().
/// @param request the line, with its end; copied.
/// @param filename the local file, with csync2's `%prefix%`; not followed where it is a symbolic link.
/// @param answer as csync_rs_pipeline_ask(); the signature that comes with it is counted.
///
/// Returns: 1; 0 where nothing was taken because the file cannot go this way, and csync_rs_delta() is to be used: one
/// of more than 16384 bytes, with a line of more than about 3900 bytes, that changes meanwhile, that cannot be read or
/// is no regular file; -1 with errno set and nothing taken.
///
/// Errors: as csync_rs_pipeline_ask().
///
/// # Safety
/// As csync_rs_pipeline_ask(); `filename` is NULL (as an empty name) or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_pipeline_patch(
    pipeline: *mut csync_pipeline,
    tag: *mut c_void,
    request: *const c_char,
    filename: *const c_char,
    answer: usize,
) -> c_int {
    // SAFETY: the caller's clause.
    let path = unsafe { host::local_path(filename) };
    // SAFETY: the caller's clause.
    let pipeline = unsafe { pipeline.as_mut() };
    guard("csync_rs_pipeline_patch", &path, -1, || {
        let (Some(pipeline), false) = (pipeline, tag.is_null() || request.is_null()) else {
            return Err(Error::file("taking a request", Errno::INVAL));
        };
        let Some(delta) = inert_delta(&path) else {
            return Ok(0);
        };
        // SAFETY: the caller's clause.
        let request = unsafe { pointer::bytes(request) };
        pipeline
            .pipeline
            .ask_with_payload(Tag(tag), &request, &delta, answer as u64)
            .map_err(|_| Error::file("taking a request", Errno::NOMEM))?;
        Ok(1)
    })
}

/// Says whose answer comes next.
///
/// @param pipeline the pipeline.
///
/// Returns: the tag of the oldest request that csync_rs_pipeline_answered() was not called for; NULL where there is none
/// and for NULL. Errors: none.
///
/// # Safety
/// As csync_rs_pipeline_has_room().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_pipeline_due(pipeline: *const csync_pipeline) -> *mut c_void {
    // SAFETY: the caller's clause.
    let pipeline = unsafe { pipeline.as_ref() };
    pipeline
        .and_then(|pipeline| pipeline.pipeline.due())
        .map_or(std::ptr::null_mut(), |tag| tag.0)
}

/// Says that the answer which was due has been read to its end.
///
/// @param pipeline the pipeline; NULL, and one where none is due, are left alone.
///
/// Returns: nothing. Errors: none.
///
/// # Safety
/// As csync_rs_pipeline_has_room().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_pipeline_answered(pipeline: *mut csync_pipeline) {
    // SAFETY: the caller's clause.
    if let Some(pipeline) = unsafe { pipeline.as_mut() } {
        pipeline.pipeline.answered();
    }
}

/// Sends as much of what was asked as leaves without waiting.
///
/// @param pipeline the pipeline.
/// @param write sends at most `count` (at most CSYNC_CHUNK) bytes without waiting: their number, or -1 with errno and
///   nothing sent. EAGAIN: no room now, and the next call is given the same bytes, as many as before; EINTR: called
///   again at once.
/// @param userdata passed to `write`.
///
/// Returns: how many bytes are left, or -1 with errno set.
///
/// Errors: EINVAL for a NULL `pipeline` or `write`; else what `write` said.
///
/// # Safety
/// As csync_rs_pipeline_has_room(); `write` is NULL or may be called with `userdata`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_rs_pipeline_send(
    pipeline: *mut csync_pipeline,
    write: Option<
        unsafe extern "C" fn(
            userdata: *mut c_void,
            buffer: *const c_void,
            count: usize,
        ) -> libc::ssize_t,
    >,
    userdata: *mut c_void,
) -> libc::ssize_t {
    // SAFETY: the caller's clause.
    let pipeline = unsafe { pipeline.as_mut() };
    guard("csync_rs_pipeline_send", Path::new(NAME), -1, || {
        let (Some(pipeline), Some(write)) = (pipeline, write) else {
            return Err(Error::file("sending requests", Errno::INVAL));
        };
        let left = pipeline.pipeline.send(|bytes| {
            set_errno(0);
            // SAFETY: the buffer is valid for reads of that many bytes; the userdata is the caller's.
            let code = unsafe { write(userdata, bytes.as_ptr().cast(), bytes.len()) };
            judge(code)
        });
        let left = left.map_err(|error| Error::file("sending requests", error))?;
        libc::ssize_t::try_from(left)
            .map_err(|_| Error::file("sending requests", ErrorKind::OutOfMemory))
    })
}
