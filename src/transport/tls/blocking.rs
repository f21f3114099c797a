//! Calls that wait until they are done, within limits.

use super::error::{Failure, Reason};
use super::session::Session;
use crate::transport::retry::is_repeated;
use crate::transport::{Direction, Transport};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// The longest single wait: far above any limit that matters, and within what the system takes.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How long a peer is waited for at the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// What a limit is counted from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    /// The beginning.
    All,
    /// The last byte that moved.
    Silence,
}

/// Repeats `attempt` until it is not refused; `TimedOut` after `limit`.
fn until<T: Transport, R>(
    session: &mut Session<T>,
    direction: Direction,
    count: Count,
    limit: Option<Duration>,
    mut attempt: impl FnMut(&mut Session<T>) -> io::Result<R>,
) -> io::Result<R> {
    let mut since: Option<Instant> = None;
    let mut moved = session.moved();
    let mut refusals = 0;
    loop {
        match attempt(session) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if is_repeated(&error) => {}
            done => return done,
        }
        let now = Instant::now();
        if count == Count::Silence && session.moved() != moved {
            moved = session.moved();
            since = None;
            refusals = 0;
        }
        let waited = now - *since.get_or_insert(now);
        let left = match limit {
            Some(limit) if waited >= limit => return Err(ErrorKind::TimedOut.into()),
            Some(limit) => limit - waited,
            None => LONGEST_WAIT,
        };
        refusals += 1;
        session.wait(direction, refusals, left.min(LONGEST_WAIT));
    }
}

/// A limit that is reached ends the session.
fn ended<T: Transport, R>(
    session: &mut Session<T>,
    result: io::Result<R>,
    what: &str,
    limit: Option<Duration>,
) -> io::Result<R> {
    match result {
        Err(error) if error.kind() == ErrorKind::TimedOut && error.raw_os_error().is_none() => {
            let milliseconds = limit.unwrap_or_default().as_millis();
            let text = format!("{what} for {milliseconds} ms");
            Err(session.fail(Failure::new(Reason::Timeout, text)))
        }
        result => result,
    }
}

/// Shakes hands, all of it within `limit`.
///
/// # Errors
/// Whatever ends the session.
pub fn handshake<T: Transport>(
    session: &mut Session<T>,
    limit: Option<Duration>,
) -> io::Result<()> {
    let result = until(
        session,
        Direction::Read,
        Count::All,
        limit,
        Session::shake_hands,
    );
    ended(
        session,
        result,
        "the handshake has not come to its end",
        limit,
    )
}

/// Reads what there is, one byte at least, 0 at the end; gives up when nothing moves for `limit`.
///
/// # Errors
/// Whatever ends the session.
pub fn read<T: Transport>(
    session: &mut Session<T>,
    buf: &mut [u8],
    limit: Option<Duration>,
) -> io::Result<usize> {
    let result = until(session, Direction::Read, Count::Silence, limit, |session| {
        session.read(buf)
    });
    ended(session, result, "nothing came from the peer", limit)
}

/// Writes all of it, part of which may be held back until the next flush or read; gives up when nothing moves for
/// `limit`.
///
/// # Errors
/// Whatever ends the session.
pub fn write<T: Transport>(
    session: &mut Session<T>,
    bytes: &[u8],
    limit: Option<Duration>,
) -> io::Result<()> {
    let mut rest = bytes;
    loop {
        let result = until(
            session,
            Direction::Write,
            Count::Silence,
            limit,
            |session| session.write(rest),
        );
        let count = ended(session, result, "the peer has taken nothing", limit)?;
        rest = &rest[count..];
        if rest.is_empty() {
            return Ok(());
        }
    }
}

/// Sends what was held back; gives up when nothing moves for `limit`.
///
/// # Errors
/// Whatever ends the session.
pub fn flush<T: Transport>(session: &mut Session<T>, limit: Option<Duration>) -> io::Result<()> {
    let result = until(
        session,
        Direction::Write,
        Count::Silence,
        limit,
        Session::flush,
    );
    ended(session, result, "the peer has taken nothing", limit)
}

/// Says that this was all, and waits a second for the peer to say so.
///
/// # Errors
/// Something could not be sent.
pub fn close<T: Transport>(session: &mut Session<T>) -> io::Result<()> {
    if session.is_over() {
        return Ok(());
    }
    let limit = Some(CLOSE_LIMIT);
    let sent = until(
        session,
        Direction::Write,
        Count::Silence,
        limit,
        Session::send_close,
    );
    ended(session, sent, "the peer has taken nothing", limit)?;
    let answered = until(
        session,
        Direction::Read,
        Count::All,
        limit,
        Session::await_close,
    );
    match answered {
        Err(error) if error.kind() != ErrorKind::TimedOut => Err(error),
        _ => Ok(()),
    }
}
