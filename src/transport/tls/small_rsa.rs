//! RSA below 2048 bits, which ring refuses: csync2's own recipe makes keys of 1024 bits, so there are clusters full of
//! them. By the crate `rsa`, which does nothing else here: larger keys never come to it.
//!
//! RUSTSEC-2023-0071 (the Marvin attack) says that the crate's arithmetic takes a time that depends on its numbers, and
//! that someone who measures many answers could find the key. There is no version without it that this library's
//! oldest compiler takes. What it means here: the attack as published needs a server that decrypts, and nothing is ever
//! decrypted here; signatures are blinded with fresh random numbers, so that what is measured has nothing to do with
//! what was signed; and a key of this size can be broken for money without any measuring. Verifying has no secrets.

use super::GOOD_RSA;
use super::certificate::{KeyKind, PublicKey};
use rsa::pkcs1::{DecodeRsaPrivateKey, DecodeRsaPublicKey};
use rsa::pkcs8::DecodePrivateKey;
use rsa::rand_core::OsRng;
use rsa::sha2::{Sha256, Sha384, Sha512};
use rsa::signature::{RandomizedSigner, SignatureEncoding, Verifier};
use rsa::traits::PublicKeyParts;
use rsa::{RsaPrivateKey, RsaPublicKey, pkcs1v15, pss};
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer, alg_id};
use rustls::sign::{Signer, SigningKey, public_key_to_spki};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};
use std::sync::Arc;

/// The smallest key that is served.
const SMALLEST: usize = 1024;

/// What these keys sign with. SHA-512 with PSS does not fit into 1024 bits.
const SCHEMES: [SignatureScheme; 2] = [
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA256,
];

#[derive(Debug, Clone)]
struct SmallKey(Arc<RsaPrivateKey>);

#[derive(Debug)]
struct SmallSigner {
    key: SmallKey,
    scheme: SignatureScheme,
}

/// The key, where it is an RSA key of a size that is served here.
pub fn signing_key(key: &PrivateKeyDer<'_>) -> Option<Arc<dyn SigningKey>> {
    let key = match key {
        PrivateKeyDer::Pkcs8(key) => RsaPrivateKey::from_pkcs8_der(key.secret_pkcs8_der()).ok()?,
        PrivateKeyDer::Pkcs1(key) => RsaPrivateKey::from_pkcs1_der(key.secret_pkcs1_der()).ok()?,
        _ => return None,
    };
    serves(key.n().bits()).then(|| -> Arc<dyn SigningKey> { Arc::new(SmallKey(Arc::new(key))) })
}

/// Whether keys of `bits` bits are served here.
pub fn serves(bits: usize) -> bool {
    (SMALLEST..GOOD_RSA).contains(&bits)
}

/// What to do about a key that is not served.
pub fn refusal(kind: KeyKind) -> String {
    format!("{kind} is too small: make a new key and certificate, of 2048 bits or more")
}

impl SigningKey for SmallKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let scheme = SCHEMES
            .into_iter()
            .find(|scheme| offered.contains(scheme))?;
        Some(Box::new(SmallSigner {
            key: self.clone(),
            scheme,
        }))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        use rsa::pkcs1::EncodeRsaPublicKey;
        let public = self.0.to_public_key().to_pkcs1_der().ok()?;
        Some(public_key_to_spki(
            &alg_id::RSA_ENCRYPTION,
            public.as_bytes(),
        ))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::RSA
    }
}

impl Signer for SmallSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let key = RsaPrivateKey::clone(&self.key.0);
        let signature = match self.scheme {
            SignatureScheme::RSA_PSS_SHA256 => pss::BlindedSigningKey::<Sha256>::new(key)
                .try_sign_with_rng(&mut OsRng, message)
                .map(|signature| signature.to_vec()),
            _ => pkcs1v15::SigningKey::<Sha256>::new(key)
                .try_sign_with_rng(&mut OsRng, message)
                .map(|signature| signature.to_vec()),
        };
        signature.map_err(|error| Error::Other(rustls::OtherError(Arc::new(error))))
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}

/// Whether the signature is the key's.
pub fn verify(
    scheme: SignatureScheme,
    public: &PublicKey<'_>,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let Ok(key) = RsaPublicKey::from_pkcs1_der(public.bits) else {
        return false;
    };
    macro_rules! is_good {
        ($kind:ident, $hash:ty) => {
            $kind::Signature::try_from(signature).is_ok_and(|signature| {
                $kind::VerifyingKey::<$hash>::new(key)
                    .verify(message, &signature)
                    .is_ok()
            })
        };
    }
    match scheme {
        SignatureScheme::RSA_PSS_SHA256 => is_good!(pss, Sha256),
        SignatureScheme::RSA_PSS_SHA384 => is_good!(pss, Sha384),
        SignatureScheme::RSA_PSS_SHA512 => is_good!(pss, Sha512),
        SignatureScheme::RSA_PKCS1_SHA256 => is_good!(pkcs1v15, Sha256),
        SignatureScheme::RSA_PKCS1_SHA384 => is_good!(pkcs1v15, Sha384),
        SignatureScheme::RSA_PKCS1_SHA512 => is_good!(pkcs1v15, Sha512),
        _ => false,
    }
}
