//! Whom we believe: everyone who proves that the certificate is theirs. Whether it is the right one is for the caller
//! to say, who knows its bytes.

use super::certificate::{KeyKind, PublicKey};
use super::{GOOD_RSA, small_rsa};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved,
    SignatureScheme,
};

/// What a peer may sign with, the best first. A GnuTLS peer takes the first one that is of its key's kind, and a key of
/// 1024 bits has no room for RSA_PSS_SHA512, whatever the peer believes: so the shortest hash is first.
const SCHEMES: [SignatureScheme; 9] = [
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ED25519,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PKCS1_SHA256,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA512,
];

/// Takes any certificate whose key signs the handshake, of servers and of clients.
#[derive(Debug)]
pub struct AnyCertificate(pub WebPkiSupportedAlgorithms);

/// The key in a peer's certificate, where it is of a kind that is served.
fn key_of<'der>(certificate: &'der CertificateDer<'_>) -> Result<PublicKey<'der>, Error> {
    let damaged = |_| Error::from(CertificateError::BadEncoding);
    let key = PublicKey::of(certificate).map_err(damaged)?;
    match key.kind().map_err(damaged)? {
        kind @ KeyKind::Rsa(bits) if bits < GOOD_RSA && !small_rsa::serves(bits) => Err(
            Error::General(format!("the peer's key: {}", small_rsa::refusal(kind))),
        ),
        KeyKind::Other => Err(Error::General(
            "the peer's key is of a kind that is not supported: RSA, P-256, P-384 and Ed25519 are"
                .into(),
        )),
        _ => Ok(key),
    }
}

impl AnyCertificate {
    fn algorithms(&self, scheme: SignatureScheme) -> &[&dyn SignatureVerificationAlgorithm] {
        let found = self.0.mapping.iter().find(|(known, _)| *known == scheme);
        found.map_or(&[], |(_, algorithms)| algorithms)
    }

    fn verify(
        &self,
        allowed: &[&dyn SignatureVerificationAlgorithm],
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = key_of(certificate)?;
        let is_small = matches!(key.kind(), Ok(KeyKind::Rsa(bits)) if bits < GOOD_RSA);
        let is_good = if is_small {
            small_rsa::verify(signed.scheme, &key, message, signed.signature())
        } else {
            allowed
                .iter()
                .filter(|algorithm| algorithm.public_key_alg_id().as_ref() == key.algorithm)
                .any(|algorithm| {
                    algorithm
                        .verify_signature(key.bits, message, signed.signature())
                        .is_ok()
                })
        };
        match is_good {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(CertificateError::BadSignature.into()),
        }
    }

    fn verify_tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(self.algorithms(signed.scheme), message, certificate, signed)
    }

    /// In TLS 1.3 a scheme names its curve as well, which the first algorithm has, and the older padding of RSA is gone.
    fn verify_tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let is_older = matches!(
            signed.scheme,
            SignatureScheme::RSA_PKCS1_SHA256
                | SignatureScheme::RSA_PKCS1_SHA384
                | SignatureScheme::RSA_PKCS1_SHA512
        );
        if is_older {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        }
        let first = self.algorithms(signed.scheme).get(..1).unwrap_or(&[]);
        self.verify(first, message, certificate, signed)
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        key_of(certificate).map(|_| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        SCHEMES.to_vec()
    }
}

impl ClientCertVerifier for AnyCertificate {
    /// None: a GnuTLS client that finds its issuer not among them shows no certificate at all.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        key_of(certificate).map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        SCHEMES.to_vec()
    }
}
