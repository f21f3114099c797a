//! The library without the feature `tls-rsa-1024`: RSA keys below 2048 bits are refused, with a word of advice.

use super::certificate::{KeyKind, PublicKey};
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use std::sync::Arc;

/// No such key is served.
pub fn signing_key(_: &PrivateKeyDer<'_>) -> Option<Arc<dyn SigningKey>> {
    None
}

/// No signature of such a key is good.
pub fn verify(_: SignatureScheme, _: &PublicKey<'_>, _: &[u8], _: &[u8]) -> bool {
    false
}

/// Whether keys of `bits` bits are served here.
pub fn serves(_bits: usize) -> bool {
    false
}

/// What to do about a key that is not served.
pub fn refusal(kind: KeyKind) -> String {
    format!(
        "{kind} is too small: make a new key and certificate, of 2048 bits or more, or build the library with the \
         feature tls-rsa-1024"
    )
}
