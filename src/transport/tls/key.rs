//! Our own certificate and key, from files.

use super::certificate::{KeyKind, PublicKey};
use super::error::LoadError;
use super::{GOOD_RSA, small_rsa};
use crate::text::reason;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use std::path::Path;
use std::sync::Arc;

/// How a DER file begins: with a SEQUENCE.
const DER: u8 = 0x30;

/// Loads the certificate and its key; says also what is to be warned of.
///
/// # Errors
/// A file that cannot be read or used, and two that do not belong together.
pub fn load(certificate: &Path, key: &Path) -> Result<(CertifiedKey, Option<String>), LoadError> {
    let chain = certificates(certificate)?;
    let public =
        PublicKey::of(&chain[0]).map_err(|error| LoadError::new(certificate, error.to_string()))?;
    let kind = public
        .kind()
        .map_err(|_| LoadError::new(certificate, "its RSA key is damaged"))?;
    let signing = signing_key(key, kind)?;
    let same = signing
        .public_key()
        .is_some_and(|info| info.as_ref() == public.info);
    if !same {
        let text = format!("not the key of the certificate {}", certificate.display());
        return Err(LoadError::new(key, text));
    }
    Ok((CertifiedKey::new(chain, signing), warning(key, kind)))
}

fn warning(path: &Path, kind: KeyKind) -> Option<String> {
    match kind {
        KeyKind::Rsa(bits) if bits < GOOD_RSA => Some(format!(
            "WARNING: {}: {kind} is within reach of those who break keys: make a new key and certificate, of 2048 bits \
             or more",
            path.display()
        )),
        _ => None,
    }
}

fn contents(path: &Path) -> Result<Vec<u8>, LoadError> {
    std::fs::read(path).map_err(|error| LoadError::new(path, reason(&error)))
}

/// At least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let bytes = contents(path)?;
    if bytes.first() == Some(&DER) {
        return Ok(vec![CertificateDer::from(bytes)]);
    }
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(LoadError::new(path, "no certificate in it, in PEM or DER")),
        Err(error) => Err(LoadError::new(path, format!("damaged PEM: {error}"))),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, LoadError> {
    let bytes = contents(path)?;
    if bytes.first() == Some(&DER) {
        return PrivateKeyDer::try_from(bytes)
            .map_err(|_| LoadError::new(path, "no key in it, in PKCS#8, PKCS#1 or SEC1"));
    }
    let is_encrypted = [&b"BEGIN ENCRYPTED"[..], b"Proc-Type: 4,ENCRYPTED"]
        .iter()
        .any(|mark| bytes.windows(mark.len()).any(|window| window == *mark));
    if is_encrypted {
        let text =
            "the key is encrypted; `openssl pkey -in FILE -out NEW-FILE` takes the password away";
        return Err(LoadError::new(path, text));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            LoadError::new(path, "no key in it, in PKCS#8, PKCS#1 or SEC1")
        }
        error => LoadError::new(path, format!("damaged PEM: {error}")),
    })
}

fn signing_key(path: &Path, kind: KeyKind) -> Result<Arc<dyn SigningKey>, LoadError> {
    let key = private_key(path)?;
    let error = match any_supported_type(&key) {
        Ok(signing) => return Ok(signing),
        Err(error) => error,
    };
    if let Some(signing) = small_rsa::signing_key(&key) {
        return Ok(signing);
    }
    Err(match kind {
        KeyKind::Rsa(bits) if bits < GOOD_RSA => LoadError::new(path, small_rsa::refusal(kind)),
        KeyKind::Other => LoadError::new(
            path,
            "the kind of key is not supported: RSA, P-256, P-384 and Ed25519 are",
        ),
        _ => LoadError::new(path, format!("the key cannot be used: {error}")),
    })
}
