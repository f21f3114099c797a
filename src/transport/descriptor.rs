//! A connection over two descriptors: a socket (both the same), two pipes, or what else reads and writes as a
//! stream. Every call is made so that it does not wait; waiting is done in one place, for both directions.

use super::retry::is_repeated;
use super::{Direction, EarlyInput, Transport};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{RecvFlags, SendFlags, SocketType, sockopt};
use rustix::pipe::SpliceFlags;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// What a pipe that is ready takes without making the writer wait (`PIPE_BUF`).
const ATOMIC: usize = 4096;

/// What an output pipe holds, so that the two ends take turns less often (1 MiB is what any user may ask for).
const PIPE_SIZE: usize = 1 << 20;

/// What is sent from a file at once.
const FILE_STEP: usize = 1 << 20;

/// What kind of thing a descriptor is, as far as the calls differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Socket,
    Pipe,
    /// A regular file or a block device: never waited for.
    File,
    Other,
}

/// A descriptor to write to. No write waits.
#[derive(Debug)]
pub struct Output<'fd> {
    descriptor: BorrowedFd<'fd>,
    kind: Kind,
}

/// Two descriptors, which may be the same. They are borrowed: the caller closes them.
#[derive(Debug)]
pub struct DescriptorPair<'fd> {
    input: BorrowedFd<'fd>,
    output: Output<'fd>,
    input_kind: Kind,
    early: EarlyInput,
    /// The end of the input, or an error, was seen ahead of its turn.
    input_ended: bool,
}

impl<'fd> DescriptorPair<'fd> {
    /// Reads from `input`, writes to `output`. With `keepalive`, a TCP connection is probed while it is silent, so that
    /// a peer that has vanished is noticed.
    ///
    /// # Errors
    /// `EBADF` for what is not open, or not for this direction; `EPROTOTYPE` for a socket or a pipe that is no stream: packets need a transport that knows their limits.
    pub fn new(
        input: BorrowedFd<'fd>,
        output: BorrowedFd<'fd>,
        keepalive: bool,
    ) -> io::Result<Self> {
        require(input, OFlags::WRONLY)?;
        require(output, OFlags::RDONLY)?;
        require_stream(input)?;
        require_stream(output)?;
        let pair = Self {
            input,
            output: Output::new(output)?,
            input_kind: kind(input)?,
            early: EarlyInput::new(EarlyInput::BOUND),
            input_ended: false,
        };
        if keepalive && pair.output.kind == Kind::Socket {
            keep_alive(output);
        }
        if pair.output.kind == Kind::Pipe {
            // Best effort: the limit for all pipes of a user may be reached.
            let _ = rustix::pipe::fcntl_setpipe_size(output, PIPE_SIZE);
        }
        Ok(pair)
    }

    /// Whether a write may raise SIGPIPE: on anything but a socket.
    #[cfg(feature = "tls")]
    pub fn may_raise_sigpipe(&self) -> bool {
        self.output.kind != Kind::Socket
    }
}

/// `EBADF` where the descriptor is open in the `wrong` way, which would look like a peer that is silent for ever.
fn require(descriptor: BorrowedFd<'_>, wrong: OFlags) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    if flags & OFlags::RWMODE == wrong || flags.contains(OFlags::PATH) {
        return Err(Errno::BADF.into());
    }
    Ok(())
}

fn kind(descriptor: BorrowedFd<'_>) -> io::Result<Kind> {
    let stat = rustix::fs::fstat(descriptor)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Kind::Pipe,
        FileType::Socket => Kind::Socket,
        FileType::RegularFile | FileType::BlockDevice => Kind::File,
        _ => Kind::Other,
    })
}

/// `EPROTOTYPE` for a socket or a pipe that carries packets.
fn require_stream(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let is_stream = match kind(descriptor)? {
        Kind::Pipe => !rustix::fs::fcntl_getfl(descriptor)?.contains(OFlags::DIRECT),
        Kind::Socket => sockopt::socket_type(descriptor)? == SocketType::STREAM,
        Kind::File | Kind::Other => true,
    };
    is_stream
        .then_some(())
        .ok_or_else(|| Errno::PROTOTYPE.into())
}

/// Probes after a minute of silence, every ten seconds, six times. Best effort: a local socket has no such thing.
fn keep_alive(socket: BorrowedFd<'_>) {
    if sockopt::set_socket_keepalive(socket, true).is_ok() {
        let _ = sockopt::set_tcp_keepidle(socket, Duration::from_secs(60));
        let _ = sockopt::set_tcp_keepintvl(socket, Duration::from_secs(10));
        let _ = sockopt::set_tcp_keepcnt(socket, 6);
    }
}

/// Whether one of `flags` (or an error, or the end) is there now.
fn is_ready(descriptor: BorrowedFd<'_>, flags: PollFlags) -> io::Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(descriptor, flags)];
    Ok(rustix::event::poll(&mut polled, Some(&Timespec::default()))? > 0)
}

fn read_now(descriptor: BorrowedFd<'_>, kind: Kind, buf: &mut [u8]) -> io::Result<usize> {
    if kind == Kind::Socket {
        return Ok(rustix::net::recv(descriptor, buf, RecvFlags::DONTWAIT)?.1);
    }
    if !is_ready(descriptor, PollFlags::IN)? {
        return Err(ErrorKind::WouldBlock.into());
    }
    Ok(rustix::io::read(descriptor, buf)?)
}

impl<'fd> Output<'fd> {
    /// Writes to `descriptor`, which stays the caller's.
    ///
    /// # Errors
    /// `EBADF` for what is not open.
    pub fn new(descriptor: BorrowedFd<'fd>) -> io::Result<Self> {
        Ok(Self {
            descriptor,
            kind: kind(descriptor)?,
        })
    }

    /// Writes as many of `bytes` as are taken without waiting.
    ///
    /// # Errors
    /// `WouldBlock` where there is no room now; what writing says.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.kind {
            Kind::Socket => {
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                return Ok(rustix::net::send(self.descriptor, bytes, flags)?);
            }
            Kind::File => return Ok(rustix::io::write(self.descriptor, bytes)?),
            Kind::Pipe => {
                let now = ReadWriteFlags::NOWAIT;
                match rustix::io::pwritev2(self.descriptor, &[IoSlice::new(bytes)], u64::MAX, now) {
                    Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
                    result => return Ok(result?),
                }
            }
            Kind::Other => {}
        }
        if !is_ready(self.descriptor, PollFlags::OUT)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let most = bytes.len().min(ATOMIC);
        Ok(rustix::io::write(self.descriptor, &bytes[..most])?)
    }

    /// Waits for room, `limit` at most.
    pub fn wait(&self, limit: Duration) {
        let limit = Timespec::try_from(limit).unwrap_or_default();
        // However it ends, the caller tries again.
        let _ = rustix::event::poll(&mut [self.polled()], Some(&limit));
    }

    fn polled(&self) -> PollFd<'fd> {
        PollFd::from_borrowed_fd(self.descriptor, PollFlags::OUT)
    }

    fn is_non_blocking(&self) -> Result<bool, Errno> {
        Ok(rustix::fs::fcntl_getfl(self.descriptor)?.contains(OFlags::NONBLOCK))
    }
}

impl DescriptorPair<'_> {
    /// Takes in what is there while output waits.
    fn take_in(&mut self) {
        let (input, kind) = (self.input, self.input_kind);
        let ended = &mut self.input_ended;
        self.early.fill(|buf| {
            let attempt = read_now(input, kind, buf);
            *ended = match &attempt {
                Ok(count) => *count == 0,
                Err(error) => !is_repeated(error),
            };
            attempt
        });
    }
}

impl Transport for DescriptorPair<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.early.take(buf) {
            0 => read_now(self.input, self.input_kind, buf),
            count => Ok(count),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn wait(&mut self, direction: Direction, _: u32, limit: Duration) {
        let writing = direction == Direction::Write;
        let mut polled = Vec::with_capacity(2);
        if writing {
            polled.push(self.output.polled());
        }
        // An end is always ready: to wait for it would be no waiting.
        let listens = !writing || (self.early.has_room() && !self.input_ended);
        if listens {
            polled.push(PollFd::from_borrowed_fd(self.input, PollFlags::IN));
        }
        let limit = Timespec::try_from(limit).unwrap_or_default();
        let woken = rustix::event::poll(&mut polled, Some(&limit)).is_ok();
        let readable = polled
            .last()
            .is_some_and(|input| !input.revents().is_empty());
        if writing && listens && woken && readable {
            self.take_in();
        }
    }

    fn sends_files(&self) -> bool {
        match self.output.kind {
            Kind::Pipe => true,
            // sendfile has no flag against waiting, and to set a socket to it would be seen by all who share it.
            Kind::Socket => self.output.is_non_blocking() == Ok(true),
            Kind::File | Kind::Other => false,
        }
    }

    fn taken_early(&self) -> u64 {
        self.early.total()
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        let count = count.min(FILE_STEP);
        let mut offset = offset;
        let output = self.output.descriptor;
        let sent = match self.output.kind {
            Kind::Pipe => {
                let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
                rustix::pipe::splice(file, Some(&mut offset), output, None, count, flags)
            }
            Kind::Socket if self.output.is_non_blocking()? => {
                rustix::fs::sendfile(output, file.as_fd(), Some(&mut offset), count)
            }
            _ => Err(Errno::INVAL),
        };
        match sent {
            // This pair of descriptors cannot do it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                Err(ErrorKind::Unsupported.into())
            }
            sent => Ok(sent?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{ConnectionError, FileSent, read_full, send_file, write_all};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    type Result = std::result::Result<(), Box<dyn std::error::Error>>;

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|number| (number * 31 / 7) as u8).collect()
    }

    #[test]
    fn two_that_write_before_they_read_do_not_wait_for_each_other() -> Result {
        let (one, other) = UnixStream::pair()?;
        let sent = pattern(8 << 20);
        let talk = |stream: UnixStream| -> std::result::Result<bool, ConnectionError> {
            let mut pair = DescriptorPair::new(stream.as_fd(), stream.as_fd(), false)
                .map_err(|error| ConnectionError::Failed(Direction::Read, error))?;
            write_all(&mut pair, &sent)?;
            let mut got = vec![0; sent.len()];
            read_full(&mut pair, &mut got)?;
            Ok(got == sent)
        };
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| talk(one));
            let second = scope.spawn(|| talk(other));
            (first.join(), second.join())
        });
        assert!(matches!((first, second), (Ok(Ok(true)), Ok(Ok(true)))));
        Ok(())
    }

    #[test]
    fn files_are_sent_over_sockets_and_pipes() -> Result {
        let mut file = tempfile::tempfile()?;
        let content = pattern(3_000_000);
        file.write_all(&content)?;
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let null = null.as_fd();
        let (pipe_out, pipe_in) = rustix::pipe::pipe()?;
        for (input, output) in [
            (far.as_fd(), near.as_fd()),
            (pipe_out.as_fd(), pipe_in.as_fd()),
        ] {
            let got = std::thread::scope(|scope| {
                let reader = scope.spawn(move || {
                    let mut pair = DescriptorPair::new(input, null, false).ok()?;
                    let mut got = vec![0; 2_900_000];
                    read_full(&mut pair, &mut got).ok()?;
                    Some(got)
                });
                let mut pair = DescriptorPair::new(null, output, false).ok()?;
                let sent = send_file(&mut pair, &file, 100_000, 5_000_000).ok()?;
                assert!(matches!(sent, FileSent::Part(2_900_000)));
                reader.join().ok()?
            });
            assert!(got.as_deref() == Some(&content[100_000..]));
        }
        Ok(())
    }

    /// sendfile would wait there, and the flag against it is not ours to set.
    #[test]
    fn a_socket_that_waits_is_left_as_it_is() -> Result {
        let (near, _far) = UnixStream::pair()?;
        let file = tempfile::tempfile()?;
        file.set_len(1 << 20)?;
        let mut pair = DescriptorPair::new(near.as_fd(), near.as_fd(), false)?;
        assert!(!pair.sends_files());
        let sent = send_file(&mut pair, &file, 0, 1 << 20);
        assert!(matches!(sent, Ok(FileSent::Unsupported(0))));
        Ok(())
    }

    #[test]
    fn packets_are_refused() -> Result {
        use rustix::net::{AddressFamily, SocketFlags, socketpair};
        let (one, _other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::empty(),
            None,
        )?;
        let error = DescriptorPair::new(one.as_fd(), one.as_fd(), true).err();
        let errno = error.and_then(|error| error.raw_os_error());
        assert_eq!(errno, Some(Errno::PROTOTYPE.raw_os_error()));
        Ok(())
    }
}
