//! Why a verb failed: step and reason in words (the caller knows the file and names it), and an errno.

use crate::rdiff::{DeltaError, FormatError, PatchError};
use crate::text::reason;
use crate::transport::{ConnectionError, Stopped, errno_of};
use rustix::io::Errno;
use std::io::{self, ErrorKind};

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection is lost; after any other error both ends are in step.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The peer could not make its payload.
    #[error("the peer reports an error instead of data")]
    Refused,
    /// The peer sent another line where a header belongs.
    #[error("the peer sent `{0}` instead of data")]
    Unexpected(String),
    /// The peer's signature breaks the format.
    #[error("bad signature from the peer: {0}")]
    Signature(#[from] FormatError),
    /// The peer's delta breaks the format.
    #[error("corrupt delta from the peer: {0}")]
    Delta(PatchError),
    /// A payload that is half sent and cannot be completed: the connection must be closed.
    #[error("{} in the middle of sending data", reason(.0))]
    Unfinished(#[source] io::Error),
    /// The program has ended it, while something else than the connection was waited for.
    #[error("cancelled while {0}")]
    Cancelled(&'static str),
    /// Something about a local file or stream.
    #[error("{} while {step}", reason(.source))]
    File {
        /// What was being done to it.
        step: &'static str,
        /// What went wrong.
        source: io::Error,
    },
}

impl Error {
    /// An error that has to do with a file.
    pub fn file(step: &'static str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        Self::File { step, source }
    }

    /// An error that has to do with a file, or says that the program has ended what was being done to it.
    pub(super) fn local(step: &'static str, source: io::Error) -> Self {
        match source.downcast::<Stopped>() {
            Ok(_) => Self::Cancelled(step),
            Err(source) => Self::file(step, source),
        }
    }

    /// The file is another than the one that was looked at before.
    pub(super) fn changed(step: &'static str) -> Self {
        Self::file(step, Errno::AGAIN)
    }

    /// Whatever has become of the connection is due to the program, which has cancelled the call.
    pub fn by_cancellation(self) -> Self {
        match self {
            Self::Connection(lost) => {
                ConnectionError::Stopped(lost.direction(), Stopped::Cancelled).into()
            }
            error => error,
        }
    }

    /// Whether this side has ended a call that nothing was wrong with.
    pub fn is_our_own_end(&self) -> bool {
        matches!(
            self,
            Self::Cancelled(_) | Self::Connection(ConnectionError::Stopped(..))
        )
    }

    /// The number that C callers find in `errno`, and whose text the daemon sends to its peer.
    pub fn errno(&self) -> i32 {
        let errno = match self {
            Self::Connection(ConnectionError::Closed(_)) => Errno::CONNRESET,
            Self::Connection(ConnectionError::Stopped(_, Stopped::Silent(_))) => Errno::TIMEDOUT,
            Self::Connection(ConnectionError::Stopped(_, Stopped::Cancelled))
            | Self::Cancelled(_) => Errno::CANCELED,
            Self::Connection(ConnectionError::Failed(_, source))
            | Self::Unfinished(source)
            | Self::File { source, .. } => {
                return errno_of(source).unwrap_or_else(|| by_kind(source));
            }
            Self::Refused | Self::Unexpected(_) => Errno::IO,
            Self::Signature(FormatError::OutOfMemory(_)) => Errno::NOMEM,
            Self::Signature(_) | Self::Delta(_) => Errno::BADMSG,
        };
        errno.raw_os_error()
    }
}

impl From<DeltaError> for Error {
    fn from(error: DeltaError) -> Self {
        match error {
            DeltaError::Source(source) => match source.downcast::<Stopped>() {
                Ok(_) => Self::Cancelled("finding the delta"),
                Err(source) => Self::file("reading the file for its delta", source),
            },
            DeltaError::OutOfMemory(_) => Self::file("finding the delta", Errno::NOMEM),
        }
    }
}

impl From<PatchError> for Error {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Io(source) => Self::local("writing the new file", source),
            corrupt => Self::Delta(corrupt),
        }
    }
}

fn by_kind(error: &io::Error) -> i32 {
    let errno = match error.kind() {
        ErrorKind::OutOfMemory => Errno::NOMEM,
        ErrorKind::NotFound => Errno::NOENT,
        ErrorKind::NotConnected => Errno::NOTCONN,
        ErrorKind::TimedOut => Errno::TIMEDOUT,
        _ => Errno::IO,
    };
    errno.raw_os_error()
}
