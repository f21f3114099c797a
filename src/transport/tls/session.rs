//! A TLS session that never waits: every call does what can be done now.

use super::certificate::{KeyKind, PublicKey};
use super::configuration::{Configuration, no_name};
use super::error::{Failure, Reason};
use super::records::{Incoming, Queue};
use crate::transport::retry::is_repeated;
use crate::transport::{CSYNC_CHUNK, Direction, Transport};
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncryptError, UnbufferedStatus, WriteTraffic};
use rustls::{CommonState, Error as Rustls, ProtocolVersion};
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::time::Duration;

/// How much of small writes is gathered until it is encrypted and sent at once.
const BATCH: usize = 4 * CSYNC_CHUNK;

/// How much of a large write is encrypted and sent at once: with less, more system calls, and a receiver that is woken
/// more often; with more, the second-level cache would not hold it.
const LARGEST: usize = 16 * CSYNC_CHUNK;

/// Which side of the session we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one that begins.
    Client,
    /// The one that answers.
    Server,
}

/// Who is at the other end, and how we speak.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The certificate, byte by byte as it came.
    pub certificate: Vec<u8>,
    /// Its SHA-256: pairs of hexadecimal digits with colons between them.
    pub fingerprint: String,
    /// Its key.
    pub key: KeyKind,
    /// `TLS 1.3` or `TLS 1.2`.
    pub version: &'static str,
    /// The cipher suite, by its name in the standard.
    pub suite: String,
}

enum Connection {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// Where a session is in its life.
#[derive(Debug)]
enum State {
    New,
    Open,
    Closed,
    Failed(Failure),
}

/// What became of a step.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// So many bytes for the reader.
    Data(usize),
    /// Nothing to do without more input.
    Idle,
    /// The peer has said that this was all.
    PeerClosed,
}

/// A session over a transport that does not wait.
pub struct Session<T> {
    inner: T,
    connection: Connection,
    state: State,
    incoming: Incoming,
    /// Decrypted, and not asked for yet.
    plain: Queue,
    /// Encrypted, and not sent yet.
    outgoing: Queue,
    /// Written, and not encrypted yet.
    gathered: Vec<u8>,
    peer_closed: bool,
    /// Seen when nobody could be told.
    doomed: Option<Failure>,
    /// The connection takes nothing any more; what the peer has sent before can still be read.
    unsendable: Option<Failure>,
    moved: u64,
    peer: Option<Peer>,
}

/// rustls has the same call twice, with types of its own for each role.
trait Side {
    type Data;
    fn common(&self) -> &CommonState;
    fn process<'c, 'i>(&'c mut self, tls: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Side for UnbufferedClientConnection {
    type Data = ClientConnectionData;
    fn common(&self) -> &CommonState {
        self
    }
    fn process<'c, 'i>(&'c mut self, tls: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(tls)
    }
}

impl Side for UnbufferedServerConnection {
    type Data = ServerConnectionData;
    fn common(&self) -> &CommonState {
        self
    }
    fn process<'c, 'i>(&'c mut self, tls: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(tls)
    }
}

/// A session's parts that a step works on.
struct Buffers<'s> {
    incoming: &'s mut Incoming,
    plain: &'s mut Queue,
    outgoing: &'s mut Queue,
}

/// What goes out in a step that writes.
#[derive(Clone, Copy)]
enum Sealed<'s> {
    Nothing,
    Data(&'s [u8]),
    CloseNotify,
}

impl Sealed<'_> {
    fn put<D>(self, mut traffic: WriteTraffic<'_, D>, outgoing: &mut Queue) -> Result<(), Failure> {
        let put = match self {
            Self::Nothing => return Ok(()),
            Self::Data(bytes) => outgoing.put_with(|room| traffic.encrypt(bytes, room)),
            Self::CloseNotify => outgoing.put_with(|room| traffic.queue_close_notify(room)),
        };
        put.map_err(|error| match error {
            EncryptError::EncryptExhausted => Failure::new(
                Reason::Exhausted,
                "the keys of this session have served for as many records as is safe, and TLS 1.2 cannot change them",
            ),
            EncryptError::InsufficientSize(_) => Failure::new(Reason::Internal, error.to_string()),
        })
    }
}

/// Hands rustls what there is, until it has data, or wants more. `sealed` goes out where the session can write.
fn step<S: Side>(
    side: &mut S,
    buffers: &mut Buffers<'_>,
    buf: &mut [u8],
    sealed: Sealed<'_>,
) -> Result<Event, Failure> {
    loop {
        let UnbufferedStatus { mut discard, state } = side.process(buffers.incoming.filled());
        let event = match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                let mut count = 0;
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    let (asked_for, rest) = record
                        .payload
                        .split_at(record.payload.len().min(buf.len() - count));
                    buf[count..][..asked_for.len()].copy_from_slice(asked_for);
                    count += asked_for.len();
                    buffers.plain.put(rest);
                    discard += record.discard;
                }
                (count > 0).then_some(Event::Data(count))
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                buffers
                    .outgoing
                    .put_with(|room| data.encode(room))
                    .map_err(|error| Failure::new(Reason::Internal, error.to_string()))?;
                None
            }
            // It is in the queue, which is sent ahead of every wait.
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                None
            }
            Ok(ConnectionState::BlockedHandshake) => Some(Event::Idle),
            Ok(ConnectionState::WriteTraffic(traffic)) => {
                sealed.put(traffic, buffers.outgoing)?;
                Some(Event::Idle)
            }
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Some(Event::PeerClosed),
            Ok(_) => {
                let text = "rustls is in a state that nobody asked for";
                return Err(Failure::new(Reason::Internal, text));
            }
            Err(error) => {
                buffers.incoming.discard(discard);
                alert(side, buffers);
                return Err(error.into());
            }
        };
        buffers.incoming.discard(discard);
        if let Some(event) = event {
            return Ok(event);
        }
    }
}

/// After an error: what rustls wants the peer to know. It may not be asked for more than that.
fn alert<S: Side>(side: &mut S, buffers: &mut Buffers<'_>) {
    while side.common().wants_write() {
        let UnbufferedStatus { state, .. } = side.process(buffers.incoming.filled());
        let Ok(ConnectionState::EncodeTlsData(mut data)) = state else {
            return;
        };
        if buffers.outgoing.put_with(|room| data.encode(room)).is_err() {
            return;
        }
    }
}

impl Connection {
    fn common(&self) -> &CommonState {
        match self {
            Self::Client(client) => client.common(),
            Self::Server(server) => server.common(),
        }
    }

    fn step(
        &mut self,
        mut buffers: Buffers<'_>,
        buf: &mut [u8],
        sealed: Sealed<'_>,
    ) -> Result<Event, Failure> {
        match self {
            Self::Client(client) => step(client, &mut buffers, buf, sealed),
            Self::Server(server) => step(server, &mut buffers, buf, sealed),
        }
    }
}

impl<T: Transport> Session<T> {
    /// A session over `inner`, which must not wait in its reads and writes. Nothing is sent yet.
    ///
    /// # Errors
    /// rustls refuses.
    pub fn new(configuration: &Configuration, role: Role, inner: T) -> Result<Self, Failure> {
        let connection = match role {
            Role::Client => Connection::Client(UnbufferedClientConnection::new(
                configuration.client.clone(),
                no_name(),
            )?),
            Role::Server => Connection::Server(UnbufferedServerConnection::new(
                configuration.server.clone(),
            )?),
        };
        Ok(Self {
            inner,
            connection,
            state: State::New,
            incoming: Incoming::new(),
            plain: Queue::default(),
            outgoing: Queue::default(),
            gathered: Vec::new(),
            peer_closed: false,
            doomed: None,
            unsendable: None,
            moved: 0,
            peer: None,
        })
    }

    /// The transport below.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// Who is at the other end, after the handshake.
    pub fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    /// Whether data may be read and written.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// Whether nothing was done yet, or everything.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::New | State::Closed)
    }

    /// How many bytes have come and gone, ever.
    pub fn moved(&self) -> u64 {
        self.moved + self.inner.taken_early()
    }

    /// How many bytes are there to be read, without looking at the connection; 1 where the end is, or an error: whoever
    /// waits for the connection ahead of a read would wait for ever.
    pub fn pending(&mut self) -> usize {
        if !self.is_open() {
            return 0;
        }
        if self.plain.is_empty() && self.doomed.is_none() {
            self.doomed = self.step(&mut [], Sealed::Nothing).err();
        }
        let is_over = self.doomed.is_some() || self.peer_closed;
        self.plain.len().max(usize::from(is_over))
    }

    /// Ends the session without another word, after a fault of ours.
    pub fn give_up(&mut self, failure: Failure) {
        self.state = State::Failed(failure);
    }

    /// Ends the session.
    pub fn fail(&mut self, failure: Failure) -> io::Error {
        self.state = State::Failed(failure.clone());
        self.gathered = Vec::new();
        // The alert that says why. The peer has it or not: the session is over.
        let _ = self.push();
        failure.into()
    }

    fn step(&mut self, buf: &mut [u8], sealed: Sealed<'_>) -> Result<Event, Failure> {
        let buffers = Buffers {
            incoming: &mut self.incoming,
            plain: &mut self.plain,
            outgoing: &mut self.outgoing,
        };
        let event = self.connection.step(buffers, buf, sealed)?;
        self.peer_closed |= event == Event::PeerClosed;
        Ok(event)
    }

    /// Encrypts and queues, ahead of which everything that has come is decrypted.
    fn seal(&mut self, sealed: Sealed<'_>) -> Result<(), Failure> {
        while self.step(&mut [], sealed)? != Event::Idle {}
        Ok(())
    }

    fn seal_gathered(&mut self) -> Result<(), Failure> {
        if !self.gathered.is_empty() {
            let gathered = std::mem::take(&mut self.gathered);
            self.seal(Sealed::Data(&gathered))?;
            self.gathered = gathered;
            self.gathered.clear();
        }
        Ok(())
    }

    /// Sends what is encrypted.
    fn push(&mut self) -> io::Result<()> {
        if let Some(failure) = &self.unsendable {
            return Err(failure.clone().into());
        }
        while !self.outgoing.is_empty() {
            match self.inner.write(self.outgoing.front()) {
                Ok(count) if count > 0 => {
                    self.outgoing.discard(count);
                    self.moved += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_repeated(&error) => return Err(error),
                attempt => {
                    let error = attempt.err().unwrap_or(ErrorKind::WriteZero.into());
                    let failure = Failure::of_system(&error);
                    self.unsendable = Some(failure.clone());
                    self.outgoing = Queue::default();
                    return Err(failure.into());
                }
            }
        }
        Ok(())
    }

    /// Takes what has come; false at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        let room = self.incoming.room();
        if room.is_empty() {
            let text = "the peer sends a message that is too large";
            return Err(Failure::new(Reason::Format, text).into());
        }
        let count = self.inner.read(room)?;
        self.incoming.add(count);
        self.moved += count as u64;
        Ok(count > 0)
    }

    fn usable(&mut self) -> io::Result<()> {
        if let Some(failure) = self.doomed.take() {
            return Err(self.fail(failure));
        }
        match &self.state {
            State::Open => Ok(()),
            State::New => Err(Failure::new(Reason::State, "no handshake was done").into()),
            State::Closed => Err(Failure::new(Reason::State, "the session is closed").into()),
            State::Failed(failure) => Err(failure.again().into()),
        }
    }

    /// An attempt's result: a refusal is passed on, anything else ends the session.
    fn settle<R>(&mut self, attempt: io::Result<R>) -> io::Result<R> {
        match attempt {
            Err(error) if !is_repeated(&error) => Err(self.fail(Failure::of(&error))),
            attempt => attempt,
        }
    }

    /// The connection takes nothing any more. Where the peer has said why, that is the better reason.
    fn settle_write<R>(&mut self, attempt: io::Result<R>) -> io::Result<R> {
        if attempt.is_err() && self.unsendable.is_some() {
            while matches!(self.fill(), Ok(true)) {
                match self.step(&mut [], Sealed::Nothing) {
                    Ok(Event::PeerClosed) => break,
                    Ok(_) => {}
                    Err(failure) => return Err(self.fail(failure)),
                }
                // An alert is behind no more than what was under way.
                if self.plain.len() > BATCH {
                    break;
                }
            }
        }
        self.settle(attempt)
    }

    /// Goes on with the handshake; `Ok` when it is done.
    ///
    /// # Errors
    /// `WouldBlock`; and what ends the session.
    pub fn shake_hands(&mut self) -> io::Result<()> {
        if !matches!(self.state, State::New) {
            return self.usable();
        }
        let attempt = self.shake_hands_now();
        self.settle_write(attempt)?;
        self.state = State::Open;
        Ok(())
    }

    fn shake_hands_now(&mut self) -> io::Result<()> {
        loop {
            self.step(&mut [], Sealed::Nothing)?;
            let sent = self.push();
            match &sent {
                Ok(()) if !self.connection.common().is_handshaking() => {
                    self.peer = Some(peer_of(self.connection.common())?);
                    return Ok(());
                }
                // The peer may have to be read before it reads.
                Err(error) if !is_repeated(error) => return sent,
                _ => {}
            }
            if !self.fill()? {
                let text = "the peer has closed the connection during the handshake";
                return Err(Failure::new(Reason::Connection, text).into());
            }
        }
    }

    fn read_now(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        // Ahead of everything: the peer may be waiting for it, and the caller may wait for something else next. Where it
        // cannot be sent, the peer may be gone, and its last words are there all the same.
        match self.flush_now() {
            Err(error) if !is_repeated(&error) && self.unsendable.is_none() => return Err(error),
            _ => {}
        }
        loop {
            let count = self.plain.take(buf);
            if count > 0 {
                return Ok(count);
            }
            match self.step(buf, Sealed::Nothing)? {
                // Not filled up with more records: the caller uses this one while the cache has it.
                Event::Data(count) => return Ok(count),
                _ if !self.plain.is_empty() => continue,
                Event::PeerClosed => return Ok(0),
                Event::Idle if self.peer_closed => return Ok(0),
                Event::Idle => {}
            }
            // A word that rustls owes the peer; sent again, or failing again, with the next one.
            let _ = self.push();
            if !self.fill()? {
                let text = "the peer's stream has ended, and the peer has not said that it would";
                return Err(Failure::new(Reason::Truncated, text).into());
            }
        }
    }

    fn write_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push()?;
        if self.gathered.len() + bytes.len() < BATCH {
            self.gathered.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let count = if bytes.len() < CSYNC_CHUNK {
            // Small pieces: the batch is filled up, so that its records are full.
            let room = BATCH - self.gathered.len();
            self.gathered.extend_from_slice(&bytes[..room]);
            self.seal_gathered()?;
            room
        } else {
            // Whole records are encrypted from where they are.
            let whole = (bytes.len() - bytes.len() % CSYNC_CHUNK).min(LARGEST);
            self.seal_gathered()?;
            self.seal(Sealed::Data(&bytes[..whole]))?;
            whole
        };
        match self.push() {
            Err(error) if !is_repeated(&error) => Err(error),
            // What is not sent yet is ours to send.
            _ => Ok(count),
        }
    }

    fn flush_now(&mut self) -> io::Result<()> {
        self.push()?;
        self.seal_gathered()?;
        self.push()
    }

    /// Sends what is left and that this was all; `Ok` when it has left, and the session is closed.
    ///
    /// # Errors
    /// `WouldBlock`; and what ends the session.
    pub fn send_close(&mut self) -> io::Result<()> {
        if matches!(self.state, State::Closed) {
            return self.settle_close();
        }
        self.usable()?;
        let attempt = self.flush_now();
        self.settle_write(attempt)?;
        let sealed = self.seal(Sealed::CloseNotify);
        self.settle(sealed.map_err(io::Error::from))?;
        self.state = State::Closed;
        self.settle_close()
    }

    fn settle_close(&mut self) -> io::Result<()> {
        let attempt = self.push();
        self.settle(attempt)
    }

    /// Throws away what comes after [`Session::send_close`]; `Ok` when the peer has said that this was all, or is gone.
    ///
    /// # Errors
    /// `WouldBlock`.
    pub fn await_close(&mut self) -> io::Result<()> {
        while !self.peer_closed {
            match self.step(&mut [], Sealed::Nothing) {
                Ok(Event::PeerClosed) | Err(_) => break,
                Ok(_) => {}
            }
            let left = self.plain.len();
            self.plain.discard(left);
            match self.fill() {
                Ok(true) => {}
                Err(error) if is_repeated(&error) => return Err(error),
                Ok(false) | Err(_) => break,
            }
        }
        Ok(())
    }
}

impl<T: Transport> Transport for Session<T> {
    /// `Ok(0)` is the end that the peer has announced.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.usable()?;
        if buf.is_empty() {
            return Ok(0);
        }
        let attempt = self.read_now(buf);
        self.settle(attempt)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.usable()?;
        let attempt = self.write_now(bytes);
        self.settle_write(attempt)
    }

    fn max_payload(&self) -> Option<NonZeroUsize> {
        None
    }

    fn flush(&mut self) -> io::Result<()> {
        self.usable()?;
        let attempt = self.flush_now();
        self.settle_write(attempt)
    }

    fn wait(&mut self, direction: Direction, refusals: u32, limit: Duration) {
        // What is still to be sent is waited for as well: the peer may have nothing to say before it has it.
        let direction = match self.outgoing.is_empty() {
            true => direction,
            false => Direction::Write,
        };
        self.inner.wait(direction, refusals, limit);
    }

    fn taken_early(&self) -> u64 {
        self.inner.taken_early()
    }
}

fn peer_of(common: &CommonState) -> Result<Peer, Failure> {
    let suite = common
        .negotiated_cipher_suite()
        .ok_or(Rustls::HandshakeNotComplete)?;
    let certificate = common
        .peer_certificates()
        .and_then(|chain| chain.first())
        .ok_or(Rustls::NoCertificatesPresented)?;
    let kind = PublicKey::of(certificate).and_then(|key| key.kind());
    let digest = sha256(certificate);
    let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    let is_tls13 = common.protocol_version() == Some(ProtocolVersion::TLSv1_3);
    Ok(Peer {
        certificate: certificate.to_vec(),
        fingerprint: pairs.join(":"),
        key: kind.unwrap_or(KeyKind::Other),
        version: if is_tls13 { "TLS 1.3" } else { "TLS 1.2" },
        suite: format!("{:?}", suite.suite()).replace("TLS13_", "TLS_"),
    })
}

/// By the hash of the suite that is always there.
fn sha256(bytes: &[u8]) -> Vec<u8> {
    use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256 as SUITE;
    let hash = SUITE.tls13().map(|suite| suite.common.hash_provider);
    hash.map_or_else(Vec::new, |hash| hash.hash(bytes).as_ref().to_vec())
}
