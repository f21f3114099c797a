//! The public key in a certificate. Of any version: csync2's own recipe makes X.509 v1, which rustls does not read.
//!
//! Strict DER: definite lengths in their shortest form, nothing left over, every field in its place. Dates, names and
//! extensions are not looked into.

use rustls::pki_types::{CertificateDer, alg_id};

/// Tags.
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
/// Issuer's and subject's unique identifiers, and extensions: optional, in this order, behind the key.
const BEHIND_THE_KEY: [u8; 3] = [0x81, 0x82, 0xa3];

/// The bytes are no certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not the DER of a certificate")]
pub struct NotDer;

/// What kind of key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA, with so many bits.
    Rsa(usize),
    /// ECDSA on the curve secp256r1.
    P256,
    /// ECDSA on the curve secp384r1.
    P384,
    /// Ed25519.
    Ed25519,
    /// Something else.
    Other,
}

/// A certificate's public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey<'der> {
    /// The SubjectPublicKeyInfo, with its header.
    pub info: &'der [u8],
    /// What is in its AlgorithmIdentifier.
    pub algorithm: &'der [u8],
    /// The key itself.
    pub bits: &'der [u8],
}

/// What is left to read.
struct Reader<'der>(&'der [u8]);

impl<'der> Reader<'der> {
    fn byte(&mut self) -> Result<u8, NotDer> {
        let (first, rest) = self.0.split_first().ok_or(NotDer)?;
        self.0 = rest;
        Ok(*first)
    }

    fn length(&mut self) -> Result<usize, NotDer> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(first.into());
        }
        let count = usize::from(first & 0x7f);
        // 0x80 is the indefinite form.
        if count == 0 || count > size_of::<u32>() {
            return Err(NotDer);
        }
        let mut length = 0;
        for _ in 0..count {
            length = length << 8 | usize::from(self.byte()?);
        }
        let is_shortest = length >= 0x80 && length >> (8 * (count - 1)) != 0;
        is_shortest.then_some(length).ok_or(NotDer)
    }

    /// The contents of an element with this tag.
    fn take(&mut self, tag: u8) -> Result<&'der [u8], NotDer> {
        if self.byte()? != tag {
            return Err(NotDer);
        }
        let length = self.length()?;
        let (contents, rest) = self.0.split_at_checked(length).ok_or(NotDer)?;
        self.0 = rest;
        Ok(contents)
    }

    fn take_optional(&mut self, tag: u8) -> Result<Option<&'der [u8]>, NotDer> {
        match self.0.first() {
            Some(next) if *next == tag => self.take(tag).map(Some),
            _ => Ok(None),
        }
    }

    fn end(self) -> Result<(), NotDer> {
        self.0.is_empty().then_some(()).ok_or(NotDer)
    }
}

/// A BIT STRING of whole bytes.
fn whole_bytes(contents: &[u8]) -> Result<&[u8], NotDer> {
    match contents.split_first() {
        Some((0, bytes)) => Ok(bytes),
        _ => Err(NotDer),
    }
}

/// A positive INTEGER, without its leading zero.
fn positive(contents: &[u8]) -> Result<&[u8], NotDer> {
    match contents {
        [0, first, ..] if *first >= 0x80 => Ok(&contents[1..]),
        [first, ..] if (1..0x80).contains(first) => Ok(contents),
        _ => Err(NotDer),
    }
}

impl<'der> PublicKey<'der> {
    /// Finds the key.
    ///
    /// # Errors
    /// These bytes are not one certificate, or more than that.
    pub fn of(certificate: &'der CertificateDer<'_>) -> Result<Self, NotDer> {
        let mut outer = Reader(certificate.as_ref());
        let mut certificate = Reader(outer.take(SEQUENCE)?);
        outer.end()?;

        let mut signed = Reader(certificate.take(SEQUENCE)?);
        certificate.take(SEQUENCE)?;
        certificate.take(BIT_STRING)?;
        certificate.end()?;

        if let Some(version) = signed.take_optional(VERSION)? {
            let mut version = Reader(version);
            version.take(INTEGER)?;
            version.end()?;
        }
        signed.take(INTEGER)?;
        // Signature algorithm, issuer, validity, subject.
        for _ in 0..4 {
            signed.take(SEQUENCE)?;
        }
        let before = signed.0;
        let mut info = Reader(signed.take(SEQUENCE)?);
        let with_header = &before[..before.len() - signed.0.len()];
        let algorithm = info.take(SEQUENCE)?;
        let bits = whole_bytes(info.take(BIT_STRING)?)?;
        info.end()?;
        for tag in BEHIND_THE_KEY {
            signed.take_optional(tag)?;
        }
        signed.end()?;
        Ok(Self {
            info: with_header,
            algorithm,
            bits,
        })
    }

    /// What kind of key it is.
    ///
    /// # Errors
    /// An RSA key that is none.
    pub fn kind(&self) -> Result<KeyKind, NotDer> {
        let kinds = [
            (alg_id::ECDSA_P256, KeyKind::P256),
            (alg_id::ECDSA_P384, KeyKind::P384),
            (alg_id::ED25519, KeyKind::Ed25519),
        ];
        if self.algorithm == alg_id::RSA_ENCRYPTION.as_ref() {
            return self.rsa_bits().map(KeyKind::Rsa);
        }
        let known = kinds.iter().find(|(id, _)| id.as_ref() == self.algorithm);
        Ok(known.map_or(KeyKind::Other, |(_, kind)| *kind))
    }

    fn rsa_bits(&self) -> Result<usize, NotDer> {
        let mut outer = Reader(self.bits);
        let mut key = Reader(outer.take(SEQUENCE)?);
        outer.end()?;
        let modulus = positive(key.take(INTEGER)?)?;
        positive(key.take(INTEGER)?)?;
        key.end()?;
        let unused = modulus.first().map_or(0, |first| first.leading_zeros());
        Ok(8 * modulus.len() - unused as usize)
    }
}

impl std::fmt::Display for KeyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rsa(bits) => write!(f, "RSA of {bits} bits"),
            Self::P256 => f.write_str("ECDSA P-256"),
            Self::P384 => f.write_str("ECDSA P-384"),
            Self::Ed25519 => f.write_str("Ed25519"),
            Self::Other => f.write_str("of a kind that is not supported"),
        }
    }
}
