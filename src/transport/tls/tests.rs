//! Sessions over memory, where every order of events can be had; and certificates from people who mean harm.

use super::certificate::{KeyKind, PublicKey};
use super::configuration::Configuration;
use super::session::{Role, Session};
use super::{Failure, Identity, Reason, Versions};
use crate::transport::{Direction, Transport};
use rustls::crypto::CipherSuiteCommon;
use rustls::crypto::ring::cipher_suite::{
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS13_AES_128_GCM_SHA256,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{SupportedCipherSuite, Tls12CipherSuite, Tls13CipherSuite};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// One direction: its bytes, and whether more may come.
#[derive(Default)]
struct Line {
    bytes: VecDeque<u8>,
    ended: bool,
}

/// One end of a connection in memory.
struct Memory {
    from: Rc<RefCell<Line>>,
    to: Rc<RefCell<Line>>,
    /// What is in `to` at most.
    bound: usize,
}

impl Transport for Memory {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut line = self.from.borrow_mut();
        if line.bytes.is_empty() && !line.ended {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = line.bytes.len().min(buf.len());
        for (place, byte) in buf.iter_mut().zip(line.bytes.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut line = self.to.borrow_mut();
        let count = bytes.len().min(self.bound - line.bytes.len());
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        line.bytes.extend(&bytes[..count]);
        Ok(count)
    }

    fn wait(&mut self, _: Direction, _: u32, _: Duration) {}
}

struct Talk {
    client: Session<Memory>,
    server: Session<Memory>,
    to_server: Rc<RefCell<Line>>,
    to_client: Rc<RefCell<Line>>,
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tls")
        .join(name)
}

fn identity(name: &str) -> Result<Identity> {
    let key = file(&format!("{name}-key.pem"));
    Ok(Identity::load(&file(&format!("{name}-cert.pem")), &key)?)
}

fn talk(configuration: &Configuration, bound: usize) -> Result<Talk> {
    let to_server = Rc::new(RefCell::new(Line::default()));
    let to_client = Rc::new(RefCell::new(Line::default()));
    let end = |from: &Rc<RefCell<Line>>, to: &Rc<RefCell<Line>>| Memory {
        from: from.clone(),
        to: to.clone(),
        bound,
    };
    Ok(Talk {
        client: Session::new(configuration, Role::Client, end(&to_client, &to_server))?,
        server: Session::new(configuration, Role::Server, end(&to_server, &to_client))?,
        to_server,
        to_client,
    })
}

fn refused(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

impl Talk {
    fn shake_hands(&mut self) -> Result {
        loop {
            let client = self.client.shake_hands();
            let server = self.server.shake_hands();
            match (client, server) {
                (Ok(()), Ok(())) => return Ok(()),
                (Err(error), _) | (_, Err(error)) if !refused(&error) => return Err(error.into()),
                _ => {}
            }
        }
    }

    /// Sends `bytes` from the client in pieces, and returns what the server got and how each of them ended.
    fn upload(&mut self, bytes: &[u8], piece: usize) -> (Vec<u8>, io::Result<()>) {
        let mut got = Vec::new();
        let mut buf = vec![0; 5000];
        let mut pieces = bytes.chunks(piece).peekable();
        let mut rest = pieces.next().unwrap_or_default();
        loop {
            let sent = match rest.is_empty() {
                false => self.client.write(rest),
                true => self.client.flush().map(|()| 0),
            };
            match sent {
                Ok(count) => {
                    rest = &rest[count..];
                    if rest.is_empty() {
                        rest = pieces.next().unwrap_or_default();
                    }
                }
                Err(error) if refused(&error) => {}
                Err(error) => {
                    self.drain(&mut got, &mut buf);
                    return (got, Err(error));
                }
            }
            self.drain(&mut got, &mut buf);
            if got.len() >= bytes.len() {
                return (got, Ok(()));
            }
        }
    }

    fn drain(&mut self, got: &mut Vec<u8>, buf: &mut [u8]) {
        while let Ok(count @ 1..) = self.server.read(buf) {
            got.extend(&buf[..count]);
        }
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|number| (number * 31 / 7) as u8).collect()
}

/// The usual suites, with keys that are used up after `limit` records.
fn short_lived(versions: Versions, limit: u64) -> Result<Configuration> {
    let suite = match versions {
        Versions::Tls12 => {
            let SupportedCipherSuite::Tls12(usual) = TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 else {
                return Err("another version".into());
            };
            SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite {
                common: CipherSuiteCommon {
                    confidentiality_limit: limit,
                    ..usual.common
                },
                ..*usual
            })))
        }
        _ => {
            let usual = TLS13_AES_128_GCM_SHA256.tls13().ok_or("no TLS 1.3")?;
            SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
                common: CipherSuiteCommon {
                    confidentiality_limit: limit,
                    ..usual.common
                },
                ..*usual
            })))
        }
    };
    Ok(Configuration::with_suites(
        &identity("p256")?,
        versions,
        &[suite],
    )?)
}

#[test]
fn through_lines_of_every_width() -> Result {
    for versions in [Versions::Tls12, Versions::Tls13] {
        let configuration = Configuration::new(&identity("p256")?, versions)?;
        for bound in [1, 100, 16384, 1 << 20] {
            let mut talk = talk(&configuration, bound)?;
            talk.shake_hands()?;
            let bytes = pattern(if bound == 1 { 20_000 } else { 400_000 });
            for piece in [333, 16384, 131_072] {
                let (got, sent) = talk.upload(&bytes, piece);
                sent?;
                assert!(got == bytes);
            }
        }
    }
    Ok(())
}

#[test]
fn keys_of_tls12_that_are_used_up_are_an_error_and_no_loss() -> Result {
    for piece in [100, 16384, 100_000] {
        let mut talk = talk(&short_lived(Versions::Tls12, 100)?, 1 << 20)?;
        talk.shake_hands()?;
        let bytes = pattern(5_000_000);
        let (got, sent) = talk.upload(&bytes, piece);
        let failure = sent.err().map(|error| Failure::of(&error));
        let reason = failure.as_ref().map(|failure| failure.reason);
        assert_eq!(reason, Some(Reason::Exhausted));
        // All records that these keys may make, but for those of the batch that did not fit; one in four may be short.
        assert!(got.len() > 70 * 16384 && got.len() < 100 * 16384);
        assert!(bytes.starts_with(&got));
        // And the peer does not take it for the end.
        talk.to_server.borrow_mut().ended = true;
        let end = talk.server.read(&mut [0; 10]);
        let end = end.err().map(|error| Failure::of(&error).reason);
        assert_eq!(end, Some(Reason::Truncated));
        assert!(talk.client.write(b"more").is_err());
        assert!(talk.client.send_close().is_err());
    }
    Ok(())
}

#[test]
fn keys_of_tls13_that_are_used_up_are_changed() -> Result {
    let mut talk = talk(&short_lived(Versions::Tls13, 50)?, 1 << 20)?;
    talk.shake_hands()?;
    let bytes = pattern(5_000_000);
    let (got, sent) = talk.upload(&bytes, 70_000);
    sent?;
    assert!(got == bytes);
    // The other direction too: the server was asked to change its own.
    let _ = talk.server.write(b"answer")?;
    talk.server.flush()?;
    let mut buf = [0; 10];
    assert_eq!(talk.client.read(&mut buf)?, 6);
    Ok(())
}

#[test]
fn both_directions_at_once() -> Result {
    let configuration = Configuration::new(&identity("ed25519")?, Versions::Both)?;
    let mut talk = talk(&configuration, 30_000)?;
    talk.shake_hands()?;
    let bytes = pattern(1_000_000);
    let mut done = [0_usize; 2];
    let mut got: [Vec<u8>; 2] = [Vec::new(), Vec::new()];
    let mut buf = vec![0; 70_000];
    while got.iter().any(|got| got.len() < bytes.len()) {
        for (side, session) in [&mut talk.client, &mut talk.server].into_iter().enumerate() {
            let rest = &bytes[done[side]..];
            match session.write(&rest[..rest.len().min(50_000)]) {
                Ok(count) => done[side] += count,
                Err(error) => assert!(refused(&error)),
            }
            match session.read(&mut buf) {
                Ok(count) => got[side].extend(&buf[..count]),
                Err(error) => assert!(refused(&error)),
            }
        }
    }
    assert!(got[0] == bytes && got[1] == bytes);
    Ok(())
}

/// A generator without a crate: the same numbers at every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }
}

/// Whatever comes, there is an answer: no panic, and no end that nobody has announced.
#[test]
fn hostile_bytes_at_every_moment() -> Result {
    let mut numbers = Numbers(1);
    let identity = identity("p256")?;
    for round in 0..1500 {
        let versions = [Versions::Tls12, Versions::Tls13, Versions::Both][round % 3];
        let mut talk = talk(&Configuration::new(&identity, versions)?, 1 << 20)?;
        // So far all is well; then one flight is damaged.
        for _ in 0..numbers.next(4) {
            let _ = talk.client.shake_hands();
            let _ = talk.server.shake_hands();
        }
        for line in [&talk.to_server, &talk.to_client] {
            let bytes = &mut line.borrow_mut().bytes;
            match numbers.next(4) {
                0 if !bytes.is_empty() => {
                    let place = numbers.next(bytes.len());
                    bytes[place] ^= 1 << numbers.next(8);
                }
                1 if !bytes.is_empty() => {
                    let length = numbers.next(bytes.len());
                    bytes.truncate(length);
                }
                2 => {
                    let head = [20 + numbers.next(5) as u8, 3, 3, numbers.next(2) as u8, 20];
                    bytes.extend(head);
                    bytes.extend((0..300).map(|_| numbers.next(256) as u8));
                }
                _ => bytes.extend((0..numbers.next(50)).map(|_| numbers.next(256) as u8)),
            }
        }
        for _ in 0..4 {
            let _ = talk.client.shake_hands();
            let _ = talk.server.shake_hands();
            for session in [&mut talk.client, &mut talk.server] {
                let _ = session.write(b"something");
                assert!(!matches!(session.read(&mut [0; 100]), Ok(0)));
                session.pending();
            }
        }
        talk.to_client.borrow_mut().ended = true;
        talk.to_server.borrow_mut().ended = true;
        for session in [&mut talk.client, &mut talk.server] {
            assert!(session.read(&mut [0; 100]).is_err());
            let _ = session.send_close();
        }
    }
    Ok(())
}

fn der(name: &str) -> Result<CertificateDer<'static>> {
    Ok(CertificateDer::from_pem_file(file(name))?)
}

#[test]
fn the_key_is_found_in_certificates_of_every_kind() -> Result {
    for (name, kind) in [
        ("rsa768", KeyKind::Rsa(768)),
        ("rsa1024", KeyKind::Rsa(1024)),
        ("rsa2048", KeyKind::Rsa(2048)),
        ("rsa3072", KeyKind::Rsa(3072)),
        ("rsa4096", KeyKind::Rsa(4096)),
        ("p256", KeyKind::P256),
        ("p384", KeyKind::P384),
        ("p521", KeyKind::Other),
        ("ed25519", KeyKind::Ed25519),
        ("signed-server", KeyKind::P256),
    ] {
        let der = der(&format!("{name}-cert.pem"))?;
        let key = PublicKey::of(&der)?;
        assert_eq!(key.kind()?, kind, "{name}");
        // As rustls's own reader finds it, where that can read it.
        if let Ok(known) = rustls::server::ParsedCertificate::try_from(&der) {
            assert_eq!(known.subject_public_key_info().as_ref(), key.info, "{name}");
        }
    }
    Ok(())
}

#[test]
fn no_part_and_no_damage_makes_a_panic() -> Result {
    for name in ["rsa1024-cert.pem", "p256-cert.pem", "ed25519-cert.pem"] {
        let der = der(name)?;
        let whole = der.as_ref().to_vec();
        for length in 0..whole.len() {
            let part = CertificateDer::from(&whole[..length]);
            assert!(PublicKey::of(&part).is_err());
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert!(PublicKey::of(&CertificateDer::from(longer)).is_err());
        for place in 0..whole.len() {
            for change in [1, 0x20, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[place] ^= change;
                let damaged = CertificateDer::from(damaged);
                if let Ok(key) = PublicKey::of(&damaged) {
                    let _ = key.kind();
                }
            }
        }
    }
    Ok(())
}

/// An element with this tag around these contents, its length as short as it can be.
fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = contents.len();
    let mut bytes = match length {
        0..0x80 => vec![tag, length as u8],
        0x80..0x100 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    bytes.extend(contents);
    bytes
}

fn made(version: &[u8], info: &[u8], behind: &[u8]) -> CertificateDer<'static> {
    let empty = element(0x30, &[]);
    let serial = element(2, &[1]);
    let signed = [
        version, &serial, &empty, &empty, &empty, &empty, info, behind,
    ]
    .concat();
    let outer = [element(0x30, &signed), empty, element(3, &[0])].concat();
    CertificateDer::from(element(0x30, &outer))
}

fn rsa(modulus: &[u8]) -> Vec<u8> {
    let key = element(0x30, &[element(2, modulus), element(2, &[3])].concat());
    let algorithm = element(0x30, rustls::pki_types::alg_id::RSA_ENCRYPTION.as_ref());
    let bits = element(3, &[&[0][..], &key].concat());
    element(0x30, &[algorithm, bits].concat())
}

#[test]
fn the_walk_is_strict() -> Result {
    let info = rsa(&[0x40, 1]);
    let kind = |der: &CertificateDer<'_>| PublicKey::of(der).and_then(|key| key.kind()).ok();
    assert_eq!(kind(&made(&[], &info, &[])), Some(KeyKind::Rsa(15)));
    assert_eq!(
        kind(&made(&[], &rsa(&[0, 0x80]), &[])),
        Some(KeyKind::Rsa(8))
    );
    let version = element(0xa0, &element(2, &[2]));
    let extensions = element(0xa3, &[]);
    assert!(kind(&made(&version, &info, &extensions)).is_some());
    let identifiers = [element(0x81, &[0]), element(0x82, &[0]), extensions.clone()].concat();
    assert!(kind(&made(&version, &info, &identifiers)).is_some());
    // Negative, zero, with a zero too many, or none.
    for modulus in [&[0x80][..], &[0], &[0, 0x40], &[0, 0, 0x80], &[]] {
        assert_eq!(kind(&made(&[], &rsa(modulus), &[])), None, "{modulus:?}");
    }
    // Out of order, twice, unknown; the version in pieces, or with something behind it.
    for behind in [
        [extensions.clone(), element(0x82, &[0])].concat(),
        [extensions.clone(), extensions.clone()].concat(),
        element(0xa4, &[]),
        vec![0],
    ] {
        assert_eq!(kind(&made(&version, &info, &behind)), None);
    }
    for version in [
        element(0xa0, &[]),
        element(0xa0, &[element(2, &[2]), vec![0]].concat()),
        element(0xa1, &element(2, &[2])),
    ] {
        assert_eq!(kind(&made(&version, &info, &[])), None);
    }
    // A BIT STRING that is not of whole bytes.
    let mut uneven = info.clone();
    let place = uneven.len()
        - 1
        - element(0x30, &[element(2, &[0x40, 1]), element(2, &[3])].concat()).len();
    uneven[place] = 1;
    assert_eq!(kind(&made(&[], &uneven, &[])), None);
    Ok(())
}

#[test]
fn lengths_have_their_shortest_form() {
    for bytes in [
        &[0x30, 0x80, 0, 0][..],
        &[0x30, 0x81, 0x01, 0],
        &[0x30, 0x82, 0x00, 0x80],
        &[0x30, 0x85, 0, 0, 0, 0, 1],
        &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
        &[0x30, 0xff],
        &[0x30],
        &[],
    ] {
        assert!(
            PublicKey::of(&CertificateDer::from(bytes)).is_err(),
            "{bytes:?}"
        );
    }
}

#[cfg(not(feature = "tls-rsa-1024"))]
#[test]
fn small_rsa_is_refused_with_advice() {
    let refusal = identity("rsa1024").err().map(|error| error.to_string());
    let refusal = refusal.unwrap_or_default();
    assert!(refusal.contains("rsa1024-key.pem: RSA of 1024 bits is too small: make a new key"));
    assert!(refusal.contains("feature tls-rsa-1024"));
}
