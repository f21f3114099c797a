//! What all sessions of a program have in common.

use super::error::{Failure, LoadError};
use super::key;
use super::verifier::AnyCertificate;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::ServerName;
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};
use std::path::Path;
use std::sync::Arc;

/// AES-128-GCM first: a GnuTLS server follows the client's order, and it is the fastest. ECDHE and AEAD, nothing else.
const SUITES: [SupportedCipherSuite; 9] = [
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// Which versions of TLS a session may come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// The newest that both sides know.
    Both,
    /// TLS 1.2 alone.
    Tls12,
    /// TLS 1.3 alone.
    Tls13,
}

impl Versions {
    fn list(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::Both => vec![&TLS13, &TLS12],
            Self::Tls12 => vec![&TLS12],
            Self::Tls13 => vec![&TLS13],
        }
    }
}

/// A certificate and its key.
#[derive(Debug)]
pub struct Identity {
    certified: CertifiedKey,
    /// What is to be warned of.
    pub warning: Option<String>,
}

impl Identity {
    /// Reads both from files: PEM or DER; PKCS#8, PKCS#1 or SEC1.
    ///
    /// # Errors
    /// A file that cannot be read or used, and two that do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, LoadError> {
        let (certified, warning) = key::load(certificate, key)?;
        Ok(Self { certified, warning })
    }
}

/// How sessions are made: our identity, for both roles.
#[derive(Debug, Clone)]
pub struct Configuration {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: Arc<ServerConfig>,
}

impl Configuration {
    /// For sessions of these versions that show this identity.
    ///
    /// # Errors
    /// None that is known: rustls refuses its own settings.
    pub fn new(identity: &Identity, versions: Versions) -> Result<Self, Failure> {
        Self::with_suites(identity, versions, &SUITES)
    }

    pub(super) fn with_suites(
        identity: &Identity,
        versions: Versions,
        suites: &[SupportedCipherSuite],
    ) -> Result<Self, Failure> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: suites.to_vec(),
            ..default_provider()
        });
        let verifier = Arc::new(AnyCertificate(provider.signature_verification_algorithms));
        // Shows the certificate whatever issuers the peer says it wants.
        let shown = Arc::new(SingleCertAndKey::from(identity.certified.clone()));

        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions.list())?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_client_cert_resolver(shown.clone());
        // A resumed session would show no certificate.
        client.resumption = Resumption::disabled();
        client.enable_sni = false;

        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions.list())?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(shown);
        // An unpatched csync2 client takes a ticket for the end of the connection.
        server.send_tls13_tickets = 0;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Self {
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }
}

/// rustls wants a name for the server; it is neither sent nor looked at.
pub(super) fn no_name() -> ServerName<'static> {
    ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into())
}
