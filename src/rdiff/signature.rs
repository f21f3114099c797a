//! The sums of a file's blocks: what stands in a signature behind its header.

use pulp::Arch;

use super::format::{SignatureHeader, StrongKind, WeakKind};
use super::rollsum::{RabinKarp, Rollsum, WeakSum};
use super::strong::{StrongBatch, StrongHasher, md4_records, strong_sum};

/// How much is hashed at once: as much as stays in a core's own cache.
const PIECE_LEN: usize = 64 * 1024;

/// Blocks that the fast hasher needs at least, to fill all lanes of a vector.
const MIN_PIECE_BLOCKS: usize = 8;

/// Makes the records of consecutive blocks: weak sum and strong sum of each.
///
/// The output depends on the data alone, not on how it was cut into calls.
#[derive(Clone)]
pub struct BlockSums {
    header: SignatureHeader,
    /// A block of which only a part was seen.
    started: Option<StartedBlock>,
}

impl BlockSums {
    /// Sums as `header` describes them.
    pub fn new(header: SignatureHeader) -> Self {
        Self {
            header,
            started: None,
        }
    }

    /// Appends to `out` the records of the blocks in `data`, a short last one included.
    ///
    /// So `data` ends with a block or with the file. Where a caller cannot hold a whole block, there are
    /// [`BlockSums::update`] and [`BlockSums::finish`].
    pub fn append(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.update(data, out);
        self.finish(out);
    }

    /// Appends to `out` the records of the blocks that end in `data`, which may be cut anywhere.
    pub fn update(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let data = self.continue_block(data, out);
        let blocks = data.chunks_exact(self.block_len());
        let rest = blocks.remainder();
        self.append_whole_blocks(&data[..data.len() - rest.len()], out);
        if !rest.is_empty() {
            self.start_block(rest);
        }
    }

    /// The data has ended: appends the record of the block that was left short, if there is one.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(block) = self.started.take() {
            block.finish(&self.header, out);
        }
    }

    fn block_len(&self) -> usize {
        self.header.block_len as usize
    }

    /// Feeds a block that an earlier call began, and returns what lies behind it.
    fn continue_block<'d>(&mut self, data: &'d [u8], out: &mut Vec<u8>) -> &'d [u8] {
        let Some(block) = &mut self.started else {
            return data;
        };
        let missing = self.header.block_len as usize - block.len;
        let (own, behind) = data.split_at(missing.min(data.len()));
        block.update(own);
        if block.len == self.header.block_len as usize {
            self.finish(out);
        }
        behind
    }

    fn start_block(&mut self, data: &[u8]) {
        let mut block = StartedBlock::new(&self.header);
        block.update(data);
        self.started = Some(block);
    }

    fn append_whole_blocks(&self, data: &[u8], out: &mut Vec<u8>) {
        let header = &self.header;
        match (header.weak, header.strong) {
            (WeakKind::Rollsum, StrongKind::Md4) => append_fast(Arch::new(), header, data, out),
            (WeakKind::Rollsum, _) => append_plain::<Rollsum>(header, data, out),
            (WeakKind::RabinKarp, _) => append_plain::<RabinKarp>(header, data, out),
        }
    }
}

/// The kind that csync2 sends, several blocks at a time.
fn append_fast(arch: Arch, header: &SignatureHeader, data: &[u8], out: &mut Vec<u8>) {
    match arch {
        #[cfg(target_arch = "x86_64")]
        Arch::V3(simd) => append_in_lanes(simd, header, data, out),
        _ => {
            let block_len = header.block_len as usize;
            let piece_blocks = (PIECE_LEN / block_len).max(MIN_PIECE_BLOCKS);
            for piece in data.chunks(piece_blocks.saturating_mul(block_len)) {
                let signature = md4_records(header.block_len, header.strong_len, piece);
                out.extend_from_slice(&signature.serialized()[SignatureHeader::LEN..]);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn append_in_lanes(simd: pulp::x86::V3, header: &SignatureHeader, data: &[u8], out: &mut Vec<u8>) {
    let block_len = header.block_len as usize;
    let mut batch = StrongBatch::new(Arch::V3(simd), header.strong);
    for piece in data.chunks(block_len.saturating_mul(batch.most())) {
        let blocks = || piece.chunks_exact(block_len);
        for (block, strong) in blocks().zip(batch.hash(blocks())) {
            let weak = super::avx2::rollsum(simd, block);
            out.extend_from_slice(&weak.digest().to_be_bytes());
            out.extend_from_slice(&strong[..header.strong_len as usize]);
        }
    }
}

/// Any kind, block by block.
fn append_plain<W: WeakSum>(header: &SignatureHeader, data: &[u8], out: &mut Vec<u8>) {
    for block in data.chunks_exact(header.block_len as usize) {
        let strong = strong_sum(header.strong, block);
        out.extend_from_slice(&W::of(block).digest().to_be_bytes());
        out.extend_from_slice(&strong[..header.strong_len as usize]);
    }
}

/// A block that comes in pieces.
#[derive(Clone)]
struct StartedBlock {
    len: usize,
    weak: StartedWeak,
    strong: StrongHasher,
}

#[derive(Clone)]
enum StartedWeak {
    Rollsum(Rollsum),
    RabinKarp(RabinKarp),
}

impl StartedBlock {
    fn new(header: &SignatureHeader) -> Self {
        Self {
            len: 0,
            weak: match header.weak {
                WeakKind::Rollsum => StartedWeak::Rollsum(Rollsum::new()),
                WeakKind::RabinKarp => StartedWeak::RabinKarp(RabinKarp::new()),
            },
            strong: StrongHasher::new(header.strong),
        }
    }

    fn update(&mut self, data: &[u8]) {
        self.len += data.len();
        match &mut self.weak {
            StartedWeak::Rollsum(sum) => sum.extend(data),
            StartedWeak::RabinKarp(sum) => sum.extend(data),
        }
        self.strong.update(data);
    }

    fn finish(self, header: &SignatureHeader, out: &mut Vec<u8>) {
        let weak = match self.weak {
            StartedWeak::Rollsum(sum) => sum.digest(),
            StartedWeak::RabinKarp(sum) => sum.digest(),
        };
        out.extend_from_slice(&weak.to_be_bytes());
        out.extend_from_slice(&self.strong.finish()[..header.strong_len as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> impl Iterator<Item = SignatureHeader> {
        let weak = [WeakKind::Rollsum, WeakKind::RabinKarp];
        let strong = [StrongKind::Md4, StrongKind::Blake2];
        weak.into_iter()
            .flat_map(move |weak| strong.map(move |strong| (weak, strong)))
            .flat_map(|(weak, strong)| {
                [(1, 16), (7, 3), (512, 16), (2048, 8)].map(|(block_len, strong_len)| {
                    SignatureHeader {
                        weak,
                        strong,
                        block_len,
                        strong_len,
                    }
                })
            })
    }

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect()
    }

    /// Block by block, without the fast path.
    fn plain(header: SignatureHeader, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for block in data.chunks(header.block_len as usize) {
            let weak = match header.weak {
                WeakKind::Rollsum => Rollsum::of(block).digest(),
                WeakKind::RabinKarp => RabinKarp::of(block).digest(),
            };
            out.extend_from_slice(&weak.to_be_bytes());
            out.extend_from_slice(&strong_sum(header.strong, block)[..header.strong_len as usize]);
        }
        out
    }

    #[test]
    fn whole_pieces_equal_the_plain_sums() {
        let data = noise(20_000);
        for header in kinds() {
            for len in [0, 1, 6, 7, 8, 511, 512, 513, 2048, 2049, 20_000] {
                let mut out = Vec::new();
                BlockSums::new(header).append(&data[..len], &mut out);
                assert_eq!(out, plain(header, &data[..len]), "{header:?} {len}");
                let with_header = (out.len() + SignatureHeader::LEN) as u64;
                assert_eq!(header.signature_len(len as u64), Some(with_header));
            }
        }
    }

    #[test]
    fn with_and_without_vectors_the_sums_are_the_same() {
        let data = noise(70_000);
        for start in 0..64 {
            for len in (1..300).step_by(13).chain([2048, 4096]) {
                let header = SignatureHeader {
                    block_len: len,
                    ..SignatureHeader::CSYNC2
                };
                let blocks = &data[start..start + 17 * len as usize];
                for arch in [Arch::new(), Arch::Scalar] {
                    let mut out = Vec::new();
                    append_fast(arch, &header, blocks, &mut out);
                    assert_eq!(out, plain(header, blocks), "{len} from {start}");
                }
            }
        }
    }

    #[test]
    fn any_cut_gives_the_same_sums() {
        let data = noise(5000);
        for header in kinds() {
            for step in [1, 3, 100, 512, 2047, 2049] {
                let mut out = Vec::new();
                let mut sums = BlockSums::new(header);
                for piece in data.chunks(step) {
                    sums.update(piece, &mut out);
                }
                sums.finish(&mut out);
                assert_eq!(out, plain(header, &data), "{header:?} in steps of {step}");
            }
        }
    }

    #[test]
    fn known_sums_of_zeroes() {
        let mut out = Vec::new();
        BlockSums::new(SignatureHeader::CSYNC2).append(&[0; 2048], &mut out);
        // s1 = 31 * 2048, s2 = 31 * 2048 * 2049 / 2, both modulo 2^16.
        assert_eq!(out[..4], [0x7c, 0x00, 0xf8, 0x00]);
        assert_eq!(out.len(), 20);
    }
}
