//! What the tests of the delta engine share: data, whole signatures and deltas in memory, and the
//! `rdiff` program of librsync, which is the measure of what is right.
#![allow(dead_code, reason = "no test uses all of it")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command as Program;

use csync_rs::rdiff::{
    BlockSums, Command, DELTA_MAGIC, DeltaPlan, Index, IndexBuilder, PatchError, PatchOutput,
    Patcher, PlanItem, SignatureHeader, StrongKind, WeakKind,
};

/// The four kinds of signature, with whole strong sums.
pub fn kinds(block_len: u32) -> [SignatureHeader; 4] {
    let kind = |weak, strong: StrongKind| SignatureHeader {
        weak,
        strong,
        block_len,
        strong_len: strong.max_len(),
    };
    [
        kind(WeakKind::Rollsum, StrongKind::Md4),
        kind(WeakKind::Rollsum, StrongKind::Blake2),
        kind(WeakKind::RabinKarp, StrongKind::Md4),
        kind(WeakKind::RabinKarp, StrongKind::Blake2),
    ]
}

/// Bytes without a pattern, the same in every run.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&word().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A reader that gives a few bytes at a time.
pub struct Trickle<'d> {
    pub data: &'d [u8],
    pub step: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let step = self.step.max(1).min(buf.len());
        self.data.read(&mut buf[..step])
    }
}

pub fn signature(header: SignatureHeader, basis: &[u8]) -> Vec<u8> {
    let mut bytes = header.encode().to_vec();
    BlockSums::new(header).append(basis, &mut bytes);
    bytes
}

pub fn index(signature: &[u8]) -> Index {
    let mut builder = IndexBuilder::new(signature.len() as u64).expect("a good length");
    builder.push(signature).expect("good records");
    builder.finish().expect("a good signature")
}

/// A plan as the bytes of a delta; what is to be streamed is read from `source`.
pub fn delta_bytes(plan: &DeltaPlan, source: &[u8]) -> Vec<u8> {
    let mut delta = DELTA_MAGIC.to_be_bytes().to_vec();
    for item in plan.items() {
        delta.extend_from_slice(&item.command().encode());
        match item {
            PlanItem::Copy { .. } => {}
            PlanItem::Captured(bytes) => delta.extend_from_slice(bytes),
            PlanItem::Streamed { offset, len } => {
                let from = offset as usize;
                delta.extend_from_slice(&source[from..from + len as usize]);
            }
        }
    }
    delta.extend_from_slice(&Command::End.encode());
    assert_eq!(delta.len() as u64, plan.delta_len());
    assert_eq!(source.len() as u64, plan.source_len());
    delta
}

pub fn delta(signature: &[u8], source: &[u8]) -> Vec<u8> {
    let mut reader = source;
    let plan =
        DeltaPlan::scan(&index(signature), &mut reader, source.len() as u64, 4096).expect("a plan");
    delta_bytes(&plan, source)
}

/// The new file in memory.
pub struct NewFile<'b> {
    pub basis: &'b [u8],
    pub bytes: Vec<u8>,
}

impl PatchOutput for NewFile<'_> {
    fn literal(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    fn copy(&mut self, offset: u64, len: u64) -> std::io::Result<()> {
        let from = offset as usize;
        self.bytes
            .extend_from_slice(&self.basis[from..from + len as usize]);
        Ok(())
    }
}

/// Applies a delta that comes in pieces of `step` bytes.
pub fn patch(basis: &[u8], delta: &[u8], step: usize) -> Result<Vec<u8>, PatchError> {
    let mut new_file = NewFile {
        basis,
        bytes: Vec::new(),
    };
    let mut patcher = Patcher::new(basis.len() as u64);
    for piece in delta.chunks(step) {
        patcher.feed(piece, &mut new_file)?;
    }
    let len = patcher.finish()?;
    assert_eq!(len, new_file.bytes.len() as u64);
    Ok(new_file.bytes)
}

/// librsync's own program, working on files in a directory that is gone afterwards.
pub struct Rdiff {
    directory: tempfile::TempDir,
}

impl Rdiff {
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    pub fn signature(&self, header: SignatureHeader, basis: &[u8]) -> Vec<u8> {
        let hash = match header.strong {
            StrongKind::Md4 => "md4",
            StrongKind::Blake2 => "blake2",
        };
        let rollsum = match header.weak {
            WeakKind::Rollsum => "rollsum",
            WeakKind::RabinKarp => "rabinkarp",
        };
        let options = [
            format!("--hash={hash}"),
            format!("--rollsum={rollsum}"),
            format!("--block-size={}", header.block_len),
            format!("--sum-size={}", header.strong_len),
        ];
        self.run("signature", &options, &[("basis", basis)], "signature")
            .expect("rdiff makes a signature")
    }

    pub fn delta(&self, signature: &[u8], source: &[u8]) -> Option<Vec<u8>> {
        let inputs = [("signature", signature), ("source", source)];
        self.run("delta", &[], &inputs, "delta")
    }

    pub fn patch(&self, basis: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
        let inputs = [("basis", basis), ("delta", delta)];
        self.run("patch", &[], &inputs, "new")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(
        &self,
        verb: &str,
        options: &[String],
        inputs: &[(&str, &[u8])],
        output: &str,
    ) -> Option<Vec<u8>> {
        let mut program = Program::new("rdiff");
        program.arg("--force").args(options).arg(verb);
        for (name, bytes) in inputs {
            std::fs::write(self.path(name), bytes).expect("a temporary file");
            program.arg(self.path(name));
        }
        let output: &Path = &self.path(output);
        let run = program
            .arg(output)
            .output()
            .expect("these tests need the program rdiff (Debian package: rdiff)");
        run.status
            .success()
            .then(|| std::fs::read(output).expect("rdiff's output"))
    }
}
