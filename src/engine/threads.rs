//! How many threads hash a large file.

use crate::rdiff::team::Start;
use std::num::NonZeroUsize;

/// How many threads hash a large file, the calling one counted, and how they are started.
#[derive(Debug, Clone, Copy)]
pub struct Threads {
    /// So many; without a number, as many as the machine has for this process, [`Threads::ENOUGH`] at most.
    pub limit: Option<NonZeroUsize>,
    /// Runs what starts them.
    pub start: Start,
}

impl Threads {
    /// Beyond this the memory and the disk set the speed, and other processes want a turn as well.
    pub const ENOUGH: usize = 4;

    /// The largest number that is kept to: each has buffers of its own.
    pub const MOST: usize = 64;

    /// The number. Asks the system where none was given, which takes a while.
    pub fn count(self) -> NonZeroUsize {
        let count = match self.limit {
            Some(limit) => limit.get().min(Self::MOST),
            None => std::thread::available_parallelism()
                .map_or(1, NonZeroUsize::get)
                .min(Self::ENOUGH),
        };
        NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self {
            limit: None,
            start: |start| start(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_kept_within_its_bounds() {
        let count = |limit| {
            let limit = NonZeroUsize::new(limit);
            let threads = Threads {
                limit,
                ..Threads::default()
            };
            threads.count().get()
        };
        assert_eq!([1, 2, 64, 65, usize::MAX].map(count), [1, 2, 64, 64, 64]);
        assert!((1..=4).contains(&count(0)));
    }
}
