//! TLS by rustls, for peers that trust each other's certificates byte by byte.
//!
//! Reading order: `configuration` (what all sessions have in common), `certificate` (finding the key in one), `key`
//! (our own), `small_rsa` (what ring leaves out), `verifier` (whom we believe), `session` (a connection that never
//! waits), `records` (its buffers), `blocking` (calls that wait, within limits), `error`.

mod blocking;
mod certificate;
mod configuration;
mod error;
mod key;
mod records;
mod session;
#[cfg_attr(not(feature = "tls-rsa-1024"), path = "no_small_rsa.rs")]
mod small_rsa;
#[cfg(test)]
mod tests;
mod verifier;

pub use blocking::{close, flush, handshake, read, write};
pub use certificate::KeyKind;
pub use configuration::{Configuration, Identity, Versions};
pub use error::{Failure, Reason, errno_of};
pub use session::{Role, Session};

/// RSA keys below this are warned of, and need the feature `tls-rsa-1024`.
pub const GOOD_RSA: usize = 2048;
