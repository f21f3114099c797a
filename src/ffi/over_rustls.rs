//! An engine over a TLS connection that a C program has set up itself with rustls-ffi, whose functions come out of the
//! same archive: two Rust libraries in one program would not link.

use super::callbacks::csync_transport;
use super::guard::set_errno;
use super::status::csync_status::{self, *};
use crate::transport::{DescriptorPair, Direction, Transport};
use rustix::io::Errno;
use rustls_ffi::connection::rustls_connection;
use rustls_ffi::rustls_io_result;
use std::ffi::{c_int, c_uint, c_void};
use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// rustls_result's RUSTLS_RESULT_OK, _UNEXPECTED_EOF and _PLAINTEXT_EMPTY.
const DONE: u32 = 7000;
const UNEXPECTED_EOF: u32 = 7010;
const PLAINTEXT_EMPTY: u32 = 7011;

/// The number of TLS 1.2 in the protocol.
const TLS12: u16 = 0x0303;

/// What one record carries.
const RECORD: usize = 16384;

/// How many records of TLS 1.2 are written at most: at 2^24 rustls drops what is written without a word. Half of that
/// leaves room for what the program has written before.
const LAST_RECORD: u64 = 1 << 23;

struct OverRustls {
    connection: *mut rustls_connection,
    pair: DescriptorPair<'static>,
    records: u64,
    failed: bool,
}

/// Makes a transport for csync_engine_over_transport() of a connection of rustls-ffi's, over the descriptors that it was
/// set up for. Blocking or not, they are used without waiting in a read or a write.
///
/// @param connection a client's or a server's, its handshake done; stays the caller's, who frees it after
/// csync_transport_free_rustls().
/// @param input read from; stays the caller's.
/// @param output written to; may be the same, likewise the caller's.
/// @param out filled in; give it to csync_transport_free_rustls() when no engine uses it any more.
///
/// Returns: CSYNC_OK, or CSYNC_E_ARGUMENT. Where the peer's stream ends without close_notify, the engine's verbs end with
/// CSYNC_E_CONNECTION and the errno ECONNABORTED; where the peer breaks TLS, with EPROTO; with TLS 1.2 they end with
/// EOVERFLOW after 2^23 records.
///
/// Errors: CSYNC_E_ARGUMENT for NULL, and for descriptors as with csync_engine_over_descriptors().
///
/// # Safety
/// `connection` is NULL or a connection that is not freed, and that no other call is made on, while an engine uses the
/// transport; `out` is NULL or valid for a write; the descriptors stay open as long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_transport_from_rustls(
    connection: *mut rustls_connection,
    input: c_int,
    output: c_int,
    out: *mut csync_transport,
) -> csync_status {
    if connection.is_null() || out.is_null() || input < 0 || output < 0 {
        return CSYNC_E_ARGUMENT;
    }
    // SAFETY: not negative, and the caller keeps it open.
    let input = unsafe { BorrowedFd::borrow_raw(input) };
    // SAFETY: likewise.
    let output = unsafe { BorrowedFd::borrow_raw(output) };
    let Ok(pair) = DescriptorPair::new(input, output, false) else {
        return CSYNC_E_ARGUMENT;
    };
    let over = Box::new(OverRustls {
        connection,
        pair,
        records: 0,
        failed: false,
    });
    let transport = csync_transport {
        size: size_of::<csync_transport>(),
        userdata: Box::into_raw(over).cast(),
        read: Some(read),
        write: Some(write),
        flush: Some(flush),
        max_payload: None,
        wait: Some(wait),
    };
    // SAFETY: not null, and the caller says it is valid for a write.
    unsafe { *out = transport };
    CSYNC_OK
}

/// Frees what csync_transport_from_rustls() has made. The connection and its descriptors stay as they are.
///
/// @param transport NULL is allowed, and one that is freed already.
///
/// Returns: nothing. Errors: none.
///
/// # Safety
/// `transport` is NULL, or was filled in by csync_transport_from_rustls(), and no engine uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_transport_free_rustls(transport: *mut csync_transport) {
    // SAFETY: the caller's clause.
    let Some(transport) = (unsafe { transport.as_mut() }) else {
        return;
    };
    let over = std::mem::replace(&mut transport.userdata, std::ptr::null_mut());
    if !over.is_null() {
        // SAFETY: made by Box::into_raw in csync_transport_from_rustls, and given up here, once.
        drop(unsafe { Box::from_raw(over.cast::<OverRustls>()) });
    }
}

/// Runs a function of the transport: no panic gets out, and errors are told as C does it.
fn answer(
    userdata: *mut c_void,
    body: impl FnOnce(&mut OverRustls) -> io::Result<usize>,
) -> libc::ssize_t {
    // SAFETY: made by csync_transport_from_rustls, not freed while an engine uses it, and engines call one at a time.
    let over = unsafe { userdata.cast::<OverRustls>().as_mut() };
    let Some(over) = over else {
        set_errno(libc::ENOTCONN);
        return -1;
    };
    let error = match catch_unwind(AssertUnwindSafe(|| body(over))) {
        Ok(Ok(count)) => return count as libc::ssize_t,
        Ok(Err(error)) => error,
        Err(_) => Errno::IO.into(),
    };
    set_errno(match error.kind() {
        ErrorKind::WouldBlock => libc::EAGAIN,
        _ => error.raw_os_error().unwrap_or(libc::EIO),
    });
    -1
}

unsafe extern "C" fn read(userdata: *mut c_void, buf: *mut c_void, count: usize) -> libc::ssize_t {
    answer(userdata, |over| over.read(buf.cast(), count))
}

unsafe extern "C" fn write(
    userdata: *mut c_void,
    buf: *const c_void,
    count: usize,
) -> libc::ssize_t {
    answer(userdata, |over| over.write(buf.cast(), count))
}

unsafe extern "C" fn flush(userdata: *mut c_void) -> c_int {
    match answer(userdata, |over| over.push().map(|()| 0)) {
        0 => 0,
        _ => -1,
    }
}

unsafe extern "C" fn wait(userdata: *mut c_void, for_write: c_int, milliseconds: c_uint) {
    answer(userdata, |over| {
        // What is still to be sent is waited for as well.
        let direction = match for_write != 0 || over.wants_write() {
            true => Direction::Write,
            false => Direction::Read,
        };
        let limit = Duration::from_millis(milliseconds.into());
        over.pair.wait(direction, 1, limit);
        Ok(0)
    });
}

/// What rustls calls for encrypted bytes: a read, or a write, of the pair.
fn moved(attempt: io::Result<usize>, out: *mut usize) -> rustls_io_result {
    match attempt {
        Ok(count) => {
            // SAFETY: rustls gives a valid pointer.
            unsafe { *out = count };
            rustls_io_result(0)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => rustls_io_result(libc::EAGAIN),
        Err(error) => rustls_io_result(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

unsafe extern "C" fn take_in(
    pair: *mut c_void,
    buf: *mut u8,
    count: usize,
    out: *mut usize,
) -> rustls_io_result {
    // SAFETY: the pair that fill() has passed, which nobody else uses meanwhile.
    let pair = unsafe { &mut *pair.cast::<DescriptorPair<'static>>() };
    // SAFETY: rustls gives so many bytes that are valid for writes.
    let buf = unsafe { std::slice::from_raw_parts_mut(buf, count) };
    moved(pair.read(buf), out)
}

unsafe extern "C" fn give_out(
    pair: *mut c_void,
    buf: *const u8,
    count: usize,
    out: *mut usize,
) -> rustls_io_result {
    // SAFETY: the pair that push() has passed, which nobody else uses meanwhile.
    let pair = unsafe { &mut *pair.cast::<DescriptorPair<'static>>() };
    // SAFETY: rustls gives so many bytes that are valid for reads.
    let buf = unsafe { std::slice::from_raw_parts(buf, count) };
    moved(pair.write(buf), out)
}

fn of_system(code: rustls_io_result) -> io::Result<()> {
    match code.0 {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

impl OverRustls {
    fn pair(&mut self) -> *mut c_void {
        (&raw mut self.pair).cast()
    }

    fn wants_write(&self) -> bool {
        rustls_connection::rustls_connection_wants_write(self.connection)
    }

    /// Sends what rustls has encrypted.
    fn push(&mut self) -> io::Result<()> {
        while self.wants_write() {
            let mut count = 0;
            let pair = self.pair();
            of_system(rustls_connection::rustls_connection_write_tls(
                self.connection,
                Some(give_out),
                pair,
                &mut count,
            ))?;
        }
        Ok(())
    }

    /// Gives rustls what has come, and has it decrypted.
    fn fill(&mut self) -> io::Result<()> {
        let mut count = 0;
        let pair = self.pair();
        of_system(rustls_connection::rustls_connection_read_tls(
            self.connection,
            Some(take_in),
            pair,
            &mut count,
        ))?;
        if rustls_connection::rustls_connection_process_new_packets(self.connection) as u32 != DONE
        {
            self.failed = true;
            // The alert that says why.
            let _ = self.push();
            return Err(Errno::PROTO.into());
        }
        Ok(())
    }

    fn usable(&self) -> io::Result<()> {
        match self.failed {
            true => Err(Errno::NOTCONN.into()),
            false => Ok(()),
        }
    }

    fn read(&mut self, buf: *mut u8, count: usize) -> io::Result<usize> {
        self.usable()?;
        match self.push() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        loop {
            let mut got = 0;
            match rustls_connection::rustls_connection_read(self.connection, buf, count, &mut got)
                as u32
            {
                DONE => return Ok(got),
                PLAINTEXT_EMPTY => self.fill()?,
                UNEXPECTED_EOF => return Err(Errno::CONNABORTED.into()),
                _ => return Err(Errno::IO.into()),
            }
        }
    }

    fn write(&mut self, buf: *const u8, count: usize) -> io::Result<usize> {
        self.usable()?;
        let is_old =
            rustls_connection::rustls_connection_get_protocol_version(self.connection) == TLS12;
        if is_old && self.records + count.div_ceil(RECORD) as u64 > LAST_RECORD {
            return Err(Errno::OVERFLOW.into());
        }
        loop {
            let mut taken: usize = 0;
            match rustls_connection::rustls_connection_write(
                self.connection,
                buf,
                count,
                &mut taken,
            ) as u32
            {
                // rustls holds as much as it may.
                DONE if taken == 0 && count > 0 => self.push()?,
                DONE => {
                    self.records += taken.div_ceil(RECORD) as u64;
                    return Ok(taken);
                }
                _ => return Err(Errno::IO.into()),
            }
        }
    }
}
