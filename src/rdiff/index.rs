//! A peer's signature, made searchable.
//!
//! Three parts. The records as they came, so that a run of blocks is compared with one comparison of
//! bytes. A table from the hash of a weak sum to the blocks that have it. And in front a filter, small
//! enough for the cache, that turns away most weak sums that no block has.
//!
//! For csync2's signatures a block takes 20 bytes of record, 6.25 of table and two to four of filter.

use super::filter::Filter;
use super::format::{FormatError, SignatureHeader};
use super::strong::StrongSum;
use super::table::Table;

/// Takes a signature in, cut anywhere, and makes an [`Index`] of it.
///
/// Memory grows with what has arrived, never with what was announced.
pub struct IndexBuilder {
    announced: u64,
    received: u64,
    head: [u8; SignatureHeader::LEN],
    header: Option<SignatureHeader>,
    records: Vec<u8>,
}

impl IndexBuilder {
    /// Begins a signature of `signature_len` bytes, the header included.
    pub fn new(signature_len: u64) -> Result<Self, FormatError> {
        if signature_len < SignatureHeader::LEN as u64 {
            return Err(FormatError::Length(signature_len));
        }
        Ok(Self {
            announced: signature_len,
            received: 0,
            head: [0; SignatureHeader::LEN],
            header: None,
            records: Vec::new(),
        })
    }

    /// Takes the next bytes of the signature.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        if bytes.len() as u64 > self.announced - self.received {
            return Err(FormatError::TooLong(self.announced));
        }
        let records = self.push_head(bytes)?;
        self.reserve(records.len())?;
        self.records.extend_from_slice(records);
        self.received += bytes.len() as u64;
        Ok(())
    }

    /// The signature is complete: makes the index.
    pub fn finish(self) -> Result<Index, FormatError> {
        let truncated = FormatError::Truncated {
            got: self.received,
            announced: self.announced,
        };
        if self.received != self.announced {
            return Err(truncated);
        }
        let header = self.header.ok_or(truncated)?;
        let out_of_memory = FormatError::OutOfMemory(self.announced);
        Index::build(header, self.records).map_err(|_| out_of_memory)
    }

    /// Takes what belongs to the header, and returns the rest.
    fn push_head<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], FormatError> {
        if self.header.is_some() {
            return Ok(bytes);
        }
        // Without a header less than all of it was received.
        let filled = self.received as usize;
        let (own, rest) = bytes.split_at(bytes.len().min(SignatureHeader::LEN - filled));
        self.head[filled..filled + own.len()].copy_from_slice(own);
        if filled + own.len() == SignatureHeader::LEN {
            let header = SignatureHeader::parse(&self.head)?;
            header.blocks_of_signature(self.announced)?;
            self.header = Some(header);
        }
        Ok(rest)
    }

    /// Makes room by doubling, but not beyond what was announced.
    fn reserve(&mut self, more: usize) -> Result<(), FormatError> {
        let needed = self.records.len() + more;
        if needed <= self.records.capacity() {
            return Ok(());
        }
        let most = usize::try_from(self.announced).unwrap_or(usize::MAX) - SignatureHeader::LEN;
        let target = needed.saturating_mul(2).max(1 << 16).min(most);
        self.records
            .try_reserve_exact(target - self.records.len())
            .map_err(|_| FormatError::OutOfMemory(self.announced))
    }
}

/// A signature in which blocks are found by their sums.
pub struct Index {
    header: SignatureHeader,
    /// The records of all blocks, as they came.
    records: Vec<u8>,
    block_count: u32,
    table: Table,
    filter: Filter,
}

impl Index {
    /// The header of the signature.
    pub fn header(&self) -> &SignatureHeader {
        &self.header
    }

    /// Blocks in the signature.
    pub fn block_count(&self) -> u64 {
        u64::from(self.block_count)
    }

    /// Whether the signature is of an empty basis.
    pub fn is_empty(&self) -> bool {
        self.block_count == 0
    }

    /// Bytes of memory that the index holds.
    pub fn memory(&self) -> usize {
        self.records.capacity() + self.table.memory() + self.filter.memory()
    }

    /// Turns away most weak sums that [`Index::look_up`] knows nothing of.
    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The blocks that have this weak sum, one of each kind.
    #[inline]
    pub(crate) fn look_up(&self, weak: u32) -> Candidates<'_> {
        Candidates(self.table.look_up(weak, |block| self.weak(block)))
    }

    /// Of `candidates`, the block with this strong sum.
    pub(crate) fn select(&self, candidates: Candidates<'_>, strong: &StrongSum) -> Option<u32> {
        let wanted = &strong[..self.header.strong_len as usize];
        let found = candidates
            .0
            .binary_search_by(|&block| self.strong(block).cmp(wanted));
        found.ok().map(|at| candidates.0[at])
    }

    /// The records from `block` on, `count` of them or as many as there are.
    pub(crate) fn records(&self, block: u32, count: usize) -> &[u8] {
        let len = self.record_len();
        let first = (block as usize).min(self.block_count as usize);
        let last = first.saturating_add(count).min(self.block_count as usize);
        &self.records[first * len..last * len]
    }

    pub(crate) fn record_len(&self) -> usize {
        self.header.record_len() as usize
    }

    /// Where `block` begins in the basis.
    pub(crate) fn offset(&self, block: u32) -> u64 {
        u64::from(block) * u64::from(self.header.block_len)
    }

    /// The number of the last block, the only one that may be short.
    pub(crate) fn last_block(&self) -> Option<u32> {
        self.block_count.checked_sub(1)
    }

    pub(crate) fn weak(&self, block: u32) -> u32 {
        weak_of(&self.records, self.record_len(), block)
    }

    pub(crate) fn strong(&self, block: u32) -> &[u8] {
        strong_of(&self.records, self.record_len(), block)
    }

    fn build(
        header: SignatureHeader,
        records: Vec<u8>,
    ) -> Result<Self, std::collections::TryReserveError> {
        let record_len = header.record_len() as usize;
        // The builder has checked that blocks can be numbered.
        let block_count = (records.len() / record_len) as u32;
        let table = Table::new(
            block_count,
            |block| weak_of(&records, record_len, block),
            |block| strong_of(&records, record_len, block),
        )?;
        let mut filter = Filter::for_blocks(block_count)?;
        for block in 0..block_count {
            filter.add(weak_of(&records, record_len, block));
        }
        Ok(Self {
            header,
            records,
            block_count,
            table,
            filter,
        })
    }
}

/// Blocks that share a weak sum, in the order of their strong sums.
#[derive(Clone, Copy)]
pub(crate) struct Candidates<'i>(&'i [u32]);

impl Candidates<'_> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn weak_of(records: &[u8], record_len: usize, block: u32) -> u32 {
    let at = block as usize * record_len;
    let bytes = &records[at..at + SignatureHeader::WEAK_LEN];
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn strong_of(records: &[u8], record_len: usize, block: u32) -> &[u8] {
    let at = block as usize * record_len;
    &records[at + SignatureHeader::WEAK_LEN..at + record_len]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(records: &[(u32, [u8; 16])]) -> Vec<u8> {
        let mut bytes = SignatureHeader::CSYNC2.encode().to_vec();
        for (weak, strong) in records {
            bytes.extend_from_slice(&weak.to_be_bytes());
            bytes.extend_from_slice(strong);
        }
        bytes
    }

    fn index(bytes: &[u8]) -> Result<Index, FormatError> {
        let mut builder = IndexBuilder::new(bytes.len() as u64)?;
        builder.push(bytes)?;
        builder.finish()
    }

    fn padded(strong: [u8; 16]) -> StrongSum {
        let mut sum = StrongSum::default();
        sum[..16].copy_from_slice(&strong);
        sum
    }

    fn find(index: &Index, weak: u32, strong: [u8; 16]) -> Option<u32> {
        index.select(index.look_up(weak), &padded(strong))
    }

    #[test]
    fn finds_every_block_and_nothing_else() {
        let records: Vec<_> = (0..5000u32)
            .map(|i| (i.wrapping_mul(0x1234_5677), [i as u8; 16]))
            .collect();
        let index = index(&signature(&records)).expect("a good signature");
        assert_eq!(index.block_count(), 5000);
        for (i, &(weak, strong)) in records.iter().enumerate() {
            assert_eq!(find(&index, weak, strong), Some(i as u32));
            assert_eq!(
                find(&index, weak, [0xee; 16]).is_some(),
                strong == [0xee; 16]
            );
            assert!(index.look_up(weak ^ 1).is_empty());
        }
    }

    #[test]
    fn of_equal_blocks_the_first_is_found() {
        let records = [
            (7, [1; 16]),
            (7, [2; 16]),
            (7, [1; 16]),
            (9, [1; 16]),
            (7, [2; 16]),
        ];
        let index = index(&signature(&records)).expect("a good signature");
        assert_eq!(find(&index, 7, [1; 16]), Some(0));
        assert_eq!(find(&index, 7, [2; 16]), Some(1));
        assert_eq!(find(&index, 9, [1; 16]), Some(3));
        assert_eq!(find(&index, 9, [2; 16]), None);
    }

    #[test]
    fn any_cut_gives_the_same_index() {
        let records: Vec<_> = (0..50).map(|i| (i * i, [i as u8; 16])).collect();
        let bytes = signature(&records);
        for step in [1, 5, 12, 13, 20, 64, 5000] {
            let mut builder = IndexBuilder::new(bytes.len() as u64).expect("a good length");
            for piece in bytes.chunks(step) {
                builder.push(piece).expect("a good piece");
            }
            let index = builder.finish().expect("a good signature");
            assert_eq!(index.header(), &SignatureHeader::CSYNC2);
            assert_eq!(index.records(0, 100), &bytes[12..]);
            assert_eq!(find(&index, 49, [7; 16]), Some(7));
        }
    }

    #[test]
    fn the_empty_signatures_of_csync2_and_librsync_are_empty() {
        for strong_len in [8, 16] {
            let header = SignatureHeader {
                strong_len,
                ..SignatureHeader::CSYNC2
            };
            let index = index(&header.encode()).expect("a good signature");
            assert!(index.is_empty());
            assert!(index.look_up(0).is_empty());
        }
    }

    #[test]
    fn truncation_at_every_byte_is_an_error() {
        let bytes = signature(&[(1, [1; 16]), (2, [2; 16])]);
        for len in 0..bytes.len() {
            let mut builder = IndexBuilder::new(bytes.len() as u64).expect("a good length");
            builder.push(&bytes[..len]).expect("a good piece");
            assert_eq!(
                builder.finish().err(),
                Some(FormatError::Truncated {
                    got: len as u64,
                    announced: bytes.len() as u64
                })
            );
            if len != 12 && len != 32 {
                assert_eq!(
                    index(&bytes[..len]).err(),
                    Some(FormatError::Length(len as u64))
                );
            }
        }
    }

    #[test]
    fn more_than_announced_is_an_error() {
        let bytes = signature(&[(1, [1; 16])]);
        let mut builder = IndexBuilder::new(bytes.len() as u64).expect("a good length");
        builder.push(&bytes).expect("a good piece");
        assert_eq!(builder.push(&[0]), Err(FormatError::TooLong(32)));
    }

    #[test]
    fn an_announced_size_takes_no_memory() {
        let mut builder = IndexBuilder::new(12 + 20 * 4_000_000_000).expect("a good length");
        builder
            .push(&SignatureHeader::CSYNC2.encode())
            .expect("a good header");
        builder.push(&[0; 20]).expect("a good record");
        assert!(builder.records.capacity() <= 1 << 16);
    }

    #[test]
    fn a_block_takes_at_most_32_bytes() {
        for count in [60_000u32, 65_536, 70_000] {
            let records: Vec<_> = (0..count)
                .map(|i| (i.wrapping_mul(77_777_777), [0; 16]))
                .collect();
            let index = index(&signature(&records)).expect("a good signature");
            let each = index.memory() as f64 / f64::from(count);
            assert!(each <= 32.0, "{each} bytes a block for {count}");
        }
    }
}
