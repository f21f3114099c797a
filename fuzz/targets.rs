//! What is done with bytes that nobody chose: one function for each format that comes from a peer.
//!
//! `tests/rdiff_fuzz.rs` feeds them, for a moment in each test run and for as long as one likes with
//! `FUZZ_SECONDS=600 cargo test --release --test rdiff_fuzz`.

use csync_rs::rdiff::{DeltaPlan, IndexBuilder, PatchOutput, Patcher, SignatureHeader};

use super::common::{delta, kinds, noise, patch, signature};

/// A signature from a peer, which decides on everything in it. The source is made of the same bytes, so
/// that weak sums are met.
pub fn signature_bytes(data: &[u8]) {
    let Some((&step, data)) = data.split_first() else {
        return;
    };
    let step = usize::from(step) + 1;
    let Ok(mut builder) = IndexBuilder::new(data.len() as u64) else {
        return;
    };
    let taken = data.chunks(step).try_for_each(|piece| builder.push(piece));
    let (Ok(()), Ok(index)) = (taken, builder.finish()) else {
        return;
    };
    let source = [data, &noise(1, 600), data, &[0; 700]].concat();
    let len = source.len() as u64;
    let plan = DeltaPlan::scan(&index, &mut &source[..], len, step).expect("a plan");
    assert_eq!(plan.source_len(), len);
    // A copy of a very short block takes more than the block, though never more than its command.
    assert!(plan.delta_len() <= 18 * len + 16);
}

/// Two versions of a file, and the parameters between them: what comes out is what went in.
pub fn delta_bytes(data: &[u8]) {
    let [kind, block_len, strong_len, cut, data @ ..] = data else {
        return;
    };
    let mut header = kinds(u32::from(*block_len) + 1)[usize::from(*kind % 4)];
    // Shorter sums may be met by chance.
    header.strong_len = (u32::from(*strong_len) % header.strong.max_len() + 1).max(8);
    let (basis, source) = data.split_at(data.len() * usize::from(*cut) / 256);
    let source = [source, basis, source].concat();
    let delta = delta(&signature(header, basis), &source);
    assert!(patch(basis, &delta, usize::from(*cut) + 1).expect("a good delta") == source);
}

/// A delta from a peer: applied at once or in pieces, it does the same.
pub fn patch_bytes(data: &[u8]) {
    let Some((&step, delta)) = data.split_first() else {
        return;
    };
    let whole = apply(delta, delta.len().max(1));
    assert_eq!(whole, apply(delta, usize::from(step) + 1));
}

/// What a delta does, in few words: it may make a file that is too long to be made here.
fn apply(delta: &[u8], step: usize) -> Result<(u64, u64), String> {
    struct Account(u64);
    impl Account {
        fn take(&mut self, number: u64) {
            self.0 = (self.0 ^ number)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29);
        }
    }
    impl PatchOutput for Account {
        fn literal(&mut self, data: &[u8]) -> std::io::Result<()> {
            data.iter().for_each(|&byte| self.take(byte.into()));
            Ok(())
        }
        fn copy(&mut self, offset: u64, len: u64) -> std::io::Result<()> {
            assert!(len > 0 && offset.checked_add(len).expect("an end") <= BASIS_LEN);
            self.take(offset);
            self.take(len);
            Ok(())
        }
    }
    const BASIS_LEN: u64 = 1 << 33;
    let (mut patcher, mut account) = (Patcher::new(BASIS_LEN), Account(0));
    for piece in delta.chunks(step) {
        patcher
            .feed(piece, &mut account)
            .map_err(|error| error.to_string())?;
    }
    let len = patcher.finish().map_err(|error| error.to_string())?;
    Ok((len, account.0))
}

/// Inputs to begin with: good ones, from which the others are made by mutation.
pub fn seeds() -> [Vec<Vec<u8>>; 3] {
    let basis = noise(2, 3000);
    let source = [&basis[700..2000], b"new", &basis[..]].concat();
    let headers = || {
        kinds(64)
            .into_iter()
            .chain(kinds(1))
            .chain([SignatureHeader {
                strong_len: 1,
                ..SignatureHeader::CSYNC2
            }])
    };
    let with_step = |bytes: Vec<u8>| [vec![40], bytes].concat();
    [
        headers()
            .map(|header| with_step(signature(header, &basis[..500])))
            .collect(),
        (0..4)
            .map(|kind| [&[kind, 31, 15, 100], &basis[..900]].concat())
            .collect(),
        headers()
            .map(|header| with_step(delta(&signature(header, &basis), &source)))
            .collect(),
    ]
}
