//! From a weak sum to the blocks that have it.
//!
//! Blocks are sorted into buckets of about sixteen, and in a bucket by weak sum and strong sum. Beside each
//! block stands a tag, some bits of its weak sum: those of a bucket fit a cache line, and nearly always tell
//! that a sum is not there.

use std::collections::TryReserveError;

use super::zeroed;

/// Blocks in a bucket, on average.
const BUCKET: u32 = 16;

/// Tags that are compared at once: more than there are in nearly all buckets.
const NEAR: usize = 32;

/// Blocks, found by their weak sums.
pub(crate) struct Table {
    /// Where each bucket begins; one more than there are buckets.
    starts: Vec<u32>,
    /// The tag of each block; behind them enough others for [`NEAR`].
    tags: Vec<u16>,
    /// The numbers of the blocks. Of blocks that are equal only the first is here.
    blocks: Vec<u32>,
}

/// Where a weak sum belongs: its bucket in the upper half, its place among the others of the bucket in the
/// lower one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u64);

impl Place {
    /// Different sums have different places, and they spread evenly over any number of buckets, although
    /// weak sums are far from even: half of a rollsum is a plain sum of bytes.
    #[inline]
    fn of(weak: u32, buckets: usize) -> Self {
        let mixed = weak ^ weak << 7;
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x9fcf_4c5d);
        Self(u64::from(mixed) * buckets as u64)
    }

    #[inline]
    fn bucket(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// Rises with the place in the bucket.
    #[inline]
    fn tag(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

impl Table {
    /// Sorts the blocks `0..block_count`, which have these sums.
    pub(crate) fn new<'r>(
        block_count: u32,
        weak: impl Fn(u32) -> u32,
        strong: impl Fn(u32) -> &'r [u8],
    ) -> Result<Self, TryReserveError> {
        let buckets = block_count.div_ceil(BUCKET).max(1) as usize;
        let place = |block| Place::of(weak(block), buckets);
        let mut table = Self {
            starts: zeroed(buckets + 1)?,
            tags: zeroed(block_count as usize + NEAR)?,
            blocks: zeroed(block_count as usize)?,
        };
        table.distribute(block_count, place);
        table.sort_and_thin(place, strong)?;
        Ok(table)
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        4 * (self.starts.capacity() + self.blocks.capacity()) + 2 * self.tags.capacity()
    }

    /// The blocks that have this weak sum, in the order of their strong sums.
    #[inline]
    pub(crate) fn look_up(&self, weak: u32, weak_of: impl Fn(u32) -> u32) -> &[u32] {
        let place = Place::of(weak, self.starts.len() - 1);
        let from = self.starts[place.bucket()] as usize;
        let to = self.starts[place.bucket() + 1] as usize;
        let near = &self.tags[from..from + NEAR];
        // All of them, whatever belongs to the bucket: that takes no decision before the end.
        let is_near = near
            .iter()
            .fold(false, |any, &tag| any | (tag == place.tag()));
        if is_near || to - from > NEAR {
            self.look_closely(from, to, place, weak, weak_of)
        } else {
            &[]
        }
    }

    #[cold]
    fn look_closely(
        &self,
        from: usize,
        to: usize,
        place: Place,
        weak: u32,
        weak_of: impl Fn(u32) -> u32,
    ) -> &[u32] {
        let tags = &self.tags[from..to];
        let first = tags.partition_point(|&tag| tag < place.tag());
        let len = tags[first..].partition_point(|&tag| tag == place.tag());
        let blocks = &self.blocks[from + first..][..len];
        let place_of = |block| Place::of(weak_of(block), self.starts.len() - 1);
        let first = blocks.partition_point(|&block| place_of(block) < place);
        let len = blocks[first..].partition_point(|&block| weak_of(block) == weak);
        &blocks[first..first + len]
    }

    /// Puts each block into its bucket, in the order of the basis.
    fn distribute(&mut self, block_count: u32, place: impl Fn(u32) -> Place) {
        for block in 0..block_count {
            self.starts[place(block).bucket()] += 1;
        }
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        for block in (0..block_count).rev() {
            let start = &mut self.starts[place(block).bucket()];
            *start -= 1;
            self.blocks[*start as usize] = block;
        }
    }

    /// Puts each bucket in the order of the sums and keeps one of the blocks that are equal.
    ///
    /// So the search in a bucket takes few steps even where a peer has put all blocks into one.
    fn sort_and_thin<'r>(
        &mut self,
        place: impl Fn(u32) -> Place,
        strong: impl Fn(u32) -> &'r [u8],
    ) -> Result<(), TryReserveError> {
        let mut bucket: Vec<(Place, u32)> = Vec::new();
        let mut kept = 0;
        for i in 0..self.starts.len() - 1 {
            let blocks = &self.blocks[self.starts[i] as usize..self.starts[i + 1] as usize];
            bucket.clear();
            bucket.try_reserve(blocks.len())?;
            bucket.extend(blocks.iter().map(|&block| (place(block), block)));
            bucket.sort_unstable();
            for equal in bucket.chunk_by_mut(|a, b| a.0 == b.0) {
                if equal.len() > 1 {
                    equal.sort_unstable_by_key(|&(_, block)| (strong(block), block));
                }
            }
            bucket
                .dedup_by(|later, first| later.0 == first.0 && strong(later.1) == strong(first.1));
            self.starts[i] = kept as u32;
            for &(place, block) in &bucket {
                self.tags[kept] = place.tag();
                self.blocks[kept] = block;
                kept += 1;
            }
        }
        if let Some(end) = self.starts.last_mut() {
            *end = kept as u32;
        }
        self.tags.truncate(kept + NEAR);
        self.blocks.truncate(kept);
        Ok(())
    }
}
