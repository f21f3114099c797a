//! Copying a range from one file to the end of another.
//!
//! The kernel shares whole pages where it can, or has a server copy them. Where it can do neither it is slower than we
//! are: `copy_file_range` goes through a pipe of 64 KiB, and large writes get large pages. 256 MiB to ext4, CPU seconds,
//! kernel and by hand: 0.105 and 0.072. And the string moves that copy between two pages are ten times slower where the
//! target stands 1 to 15 bytes further into its page than the source (seen on an EPYC 9004: 0.167 and 0.072), which is
//! where a few bytes that were put into a file leave all that is behind them.

use rustix::fs::fstatfs;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::fs::FileExt;

/// What one step copies by hand: stays in a core's own cache. Half of it takes a tenth more time.
const STEP: usize = 1 << 20;

const PAGE: u64 = 4096;

/// File systems in which pages are copied by this machine if they are copied: ext2 to ext4, XFS, Btrfs, F2FS, tmpfs and
/// overlays (the numbers are those of linux/magic.h).
const LOCAL: [u64; 6] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0x0102_1994,
    0x794c_7630,
];

/// Copies ranges, with one buffer for all of them.
#[derive(Default)]
pub struct RangeCopier {
    buffer: Vec<u8>,
}

impl RangeCopier {
    /// Appends `length` bytes of `source` from `offset` on to `target`, at its file position.
    ///
    /// # Errors
    /// `UnexpectedEof` where `source` ends early; what reading or writing says.
    pub fn copy(
        &mut self,
        source: &File,
        offset: u64,
        length: u64,
        target: &File,
    ) -> io::Result<()> {
        if lag(offset, target)? == 0 || !is_local(target) {
            self.in_kernel(source, offset, length, target)
        } else {
            self.by_hand(source, offset, length, target)
        }
    }

    fn in_kernel(
        &mut self,
        source: &File,
        offset: u64,
        length: u64,
        target: &File,
    ) -> io::Result<()> {
        let mut offset = offset;
        let mut left = length;
        while left > 0 {
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(1 << 30);
            match rustix::fs::copy_file_range(source, Some(&mut offset), target, None, step) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => left -= count as u64,
                Err(Errno::INTR) => {}
                // Two file systems, one that cannot, or a kernel that does not know the call.
                Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM) => {
                    return self.by_hand(source, offset, left, target);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn by_hand(
        &mut self,
        source: &File,
        offset: u64,
        length: u64,
        mut target: &File,
    ) -> io::Result<()> {
        let position = target.stream_position()?;
        let longest = STEP.min(usize::try_from(length).unwrap_or(STEP));
        let buffer = self.place_for(longest, offset + lag(offset, target)? / 2 + PAGE / 2);
        let mut done = 0;
        while done < length {
            // Steps end where the target's large pages do.
            let step = STEP as u64 - (position + done) % STEP as u64;
            let part = &mut buffer[..step.min(length - done) as usize];
            source.read_exact_at(part, offset + done)?;
            target.write_all(part)?;
            done += part.len() as u64;
        }
        Ok(())
    }

    /// A part of the buffer that stands in its page where `offset` does: midway between source and target, the long way
    /// round the page, neither of the two moves is one of the slow ones.
    fn place_for(&mut self, step: usize, offset: u64) -> &mut [u8] {
        let len = step + PAGE as usize;
        if self.buffer.len() < len {
            self.buffer = vec![0; len];
        }
        let address = self.buffer.as_ptr().addr() as u64;
        let start = offset.wrapping_sub(address) % PAGE;
        &mut self.buffer[start as usize..][..step]
    }
}

/// How far the position of `target` is further into its page than `offset`.
fn lag(offset: u64, mut target: &File) -> io::Result<u64> {
    Ok(target.stream_position()?.wrapping_sub(offset) % PAGE)
}

fn is_local(file: &File) -> bool {
    fstatfs(file).is_ok_and(|about| LOCAL.contains(&(about.f_type as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Way = fn(&mut RangeCopier, &File, u64, u64, &File) -> io::Result<()>;

    const WAYS: [Way; 3] = [
        RangeCopier::copy,
        RangeCopier::in_kernel,
        RangeCopier::by_hand,
    ];

    #[test]
    fn all_ways_copy_the_same_range() -> io::Result<()> {
        let content: Vec<u8> = (0..600_000_u32).map(|number| (number * 7) as u8).collect();
        let mut source = tempfile::tempfile()?;
        source.write_all(&content)?;
        let mut copier = RangeCopier::default();
        for copy in WAYS {
            for offset in (0..50).chain([4090, 5000]) {
                let mut target = tempfile::tempfile()?;
                target.write_all(b"start")?;
                copy(&mut copier, &source, offset, 100, &target)?;
                copy(&mut copier, &source, offset, 555_555, &target)?;
                let mut result = vec![0; 555_660];
                target.read_exact_at(&mut result, 0)?;
                assert_eq!(&result[..5], b"start");
                let range = &content[offset as usize..];
                assert!(result[5..105] == range[..100] && result[105..] == range[..555_555]);
            }
        }
        Ok(())
    }

    #[test]
    fn a_source_that_ends_early_is_an_error() -> io::Result<()> {
        let mut source = tempfile::tempfile()?;
        source.write_all(b"short")?;
        for copy in WAYS {
            let target = tempfile::tempfile()?;
            let error = copy(&mut RangeCopier::default(), &source, 0, 6, &target).err();
            assert_eq!(
                error.map(|error| error.kind()),
                Some(ErrorKind::UnexpectedEof)
            );
        }
        Ok(())
    }
}
