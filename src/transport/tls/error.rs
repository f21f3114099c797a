//! What goes wrong in TLS, in words.

use crate::text::reason;
use rustix::io::Errno;
use rustls::{CertificateError, Error as Rustls, InvalidMessage};
use std::io;
use std::path::{Path, PathBuf};

/// A certificate or a key that cannot be used: file and reason.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", .path.display())]
pub struct LoadError {
    path: PathBuf,
    reason: String,
}

impl LoadError {
    /// The file at `path` cannot be used because of `reason`.
    pub fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// What kind of thing ended a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The peer has not proved who it is.
    Identity,
    /// The peer reports an error.
    Peer,
    /// The peer breaks the rules, or wants what we cannot do.
    Format,
    /// The connection is lost.
    Connection,
    /// The peer's stream ended, and the peer has not said so.
    Truncated,
    /// Nothing moved for too long.
    Timeout,
    /// These keys must not be used any longer.
    Exhausted,
    /// Not possible in this state.
    State,
    /// A fault of ours.
    Internal,
}

/// Why a session has ended.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// The kind of thing.
    pub reason: Reason,
    /// The number for C.
    pub errno: i32,
    text: String,
}

impl Failure {
    /// A failure with the errno that its reason always has.
    pub fn new(reason: Reason, text: impl Into<String>) -> Self {
        let errno = match reason {
            Reason::Identity => Errno::ACCESS,
            Reason::Peer | Reason::Format => Errno::PROTO,
            Reason::Connection => Errno::CONNRESET,
            Reason::Truncated => Errno::CONNABORTED,
            Reason::Timeout => Errno::TIMEDOUT,
            Reason::Exhausted => Errno::OVERFLOW,
            Reason::State => Errno::NOTCONN,
            Reason::Internal => Errno::IO,
        };
        Self {
            reason,
            errno: errno.raw_os_error(),
            text: text.into(),
        }
    }

    /// A system call failed.
    pub fn of_system(error: &io::Error) -> Self {
        Self {
            reason: Reason::Connection,
            errno: error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
            text: reason(error),
        }
    }

    /// The failure in an error that this room has made.
    pub fn of(error: &io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        inner.cloned().unwrap_or_else(|| Self::of_system(error))
    }

    /// For calls after the one that was told the failure itself.
    pub fn again(&self) -> Self {
        match self.reason {
            // Asked for once more at each border of a command.
            Reason::Truncated => self.clone(),
            _ => Self::new(
                Reason::State,
                format!("the session has ended before: {}", self.text),
            ),
        }
    }
}

/// The errno of a failure that is in an error.
pub fn errno_of(error: &io::Error) -> Option<i32> {
    let failure: Option<&Failure> = error.get_ref().and_then(|inner| inner.downcast_ref());
    failure.map(|failure| failure.errno)
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        Self::other(failure)
    }
}

impl From<Rustls> for Failure {
    fn from(error: Rustls) -> Self {
        match error {
            Rustls::AlertReceived(alert) => Self::new(
                Reason::Peer,
                format!("the peer has ended the session with the alert {alert:?}"),
            ),
            Rustls::NoCertificatesPresented => {
                Self::new(Reason::Identity, "the peer shows no certificate")
            }
            Rustls::InvalidCertificate(CertificateError::BadSignature) => Self::new(
                Reason::Identity,
                "the peer does not have the key of the certificate that it shows: bad signature",
            ),
            Rustls::InvalidCertificate(CertificateError::BadEncoding) => Self::new(
                Reason::Identity,
                "the peer's certificate cannot be read: its encoding is damaged",
            ),
            // What the verifier says in words of its own.
            Rustls::General(text) => Self::new(Reason::Identity, text),
            Rustls::PeerIncompatible(why) => Self::new(
                Reason::Format,
                format!("nothing that both sides can do: {why:?}"),
            ),
            Rustls::PeerSentOversizedRecord
            | Rustls::InvalidMessage(InvalidMessage::MessageTooLarge) => {
                Self::new(Reason::Format, "the peer sends a record that is too large")
            }
            Rustls::InvalidMessage(what) => Self::new(
                Reason::Format,
                format!("what the peer sends is no TLS, or damaged: {what:?}"),
            ),
            Rustls::DecryptError => Self::new(
                Reason::Format,
                "a record from the peer is damaged: it cannot be decrypted",
            ),
            Rustls::InvalidCertificate(_)
            | Rustls::PeerMisbehaved(_)
            | Rustls::InappropriateMessage { .. }
            | Rustls::InappropriateHandshakeMessage { .. } => {
                Self::new(Reason::Format, format!("the peer breaks TLS: {error}"))
            }
            _ => Self::new(Reason::Internal, error.to_string()),
        }
    }
}
