//! librsync's `rdiff` made of this library: the same three verbs on files.
//!
//! ```text
//! rdiff signature [--threads=N] BASIS SIGNATURE
//! rdiff delta SIGNATURE SOURCE DELTA
//! rdiff patch BASIS DELTA NEW
//! ```
//!
//! `make bench` measures it against the other.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;

use csync_rs::rdiff::{
    Command, DELTA_MAGIC, DeltaPlan, IndexBuilder, PatchOutput, Patcher, PlanItem, SignatureHeader,
    Team,
};

/// As the engine copies.
#[path = "../src/files/copy.rs"]
mod copy;

/// What is read or written at once.
const PIECE: usize = 64 * 1024;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let threads = arguments
        .get(1)
        .and_then(|option| option.to_str()?.strip_prefix("--threads="));
    let threads: NonZeroUsize = threads.unwrap_or("1").parse()?;
    arguments.retain(|argument| !argument.as_encoded_bytes().starts_with(b"--"));
    let paths: Vec<_> = arguments.iter().skip(1).map(Path::new).collect();
    let verb = arguments.first().and_then(|verb| verb.to_str());
    match (verb, paths.as_slice()) {
        (Some("signature"), [basis, signature]) => make_signature(basis, signature, threads),
        (Some("delta"), [signature, source, delta]) => make_delta(signature, source, delta),
        (Some("patch"), [basis, delta, new]) => apply_patch(basis, delta, new),
        _ => Err("rdiff signature BASIS SIGNATURE | delta SIGNATURE SOURCE DELTA | patch BASIS DELTA NEW".into()),
    }
}

fn make_signature(basis: &Path, signature: &Path, threads: NonZeroUsize) -> Outcome {
    let basis = File::open(basis)?;
    let len = basis.metadata()?.len();
    let mut out = BufWriter::with_capacity(PIECE, File::create(signature)?);
    out.write_all(&SignatureHeader::CSYNC2.encode())?;
    let mut team = Team::new(SignatureHeader::CSYNC2, threads, |start| start())?;
    let read_at = |offset: u64, piece: &mut [u8]| basis.read_exact_at(piece, offset);
    let mut done = 0;
    while done < len {
        let round = team.round_len().min(len - done);
        out.write_all(team.round(&read_at, done, round)?)?;
        done += round;
    }
    Ok(out.flush()?)
}

fn make_delta(signature: &Path, source: &Path, delta: &Path) -> Outcome {
    let signature = std::fs::read(signature)?;
    let mut builder = IndexBuilder::new(signature.len() as u64)?;
    builder.push(&signature)?;
    drop(signature);
    let index = builder.finish()?;
    let mut source = File::open(source)?;
    let len = source.metadata()?.len();
    let delta = File::create(delta)?;
    let mut out = Output::to(&delta);
    // Nothing need be held in memory of a source that can be read again.
    let plan = DeltaPlan::scan(&index, &mut source, len, 0)?;
    out.file.write_all(&DELTA_MAGIC.to_be_bytes())?;
    for item in plan.items() {
        out.file.write_all(&item.command().encode())?;
        match item {
            PlanItem::Copy { .. } => {}
            PlanItem::Captured(bytes) => out.file.write_all(bytes)?,
            PlanItem::Streamed { offset, len } => out.append(&source, offset, len)?,
        }
    }
    out.file.write_all(&Command::End.encode())?;
    Ok(out.file.flush()?)
}

fn apply_patch(basis: &Path, delta: &Path, new: &Path) -> Outcome {
    let basis = File::open(basis)?;
    let mut delta = File::open(delta)?;
    let mut patcher = Patcher::new(basis.metadata()?.len());
    let new = File::create(new)?;
    let mut new = NewFile {
        basis,
        out: Output::to(&new),
    };
    let mut piece = vec![0; PIECE];
    loop {
        let len = delta.read(&mut piece)?;
        if len == 0 {
            break;
        }
        patcher.feed(&piece[..len], &mut new)?;
    }
    patcher.finish()?;
    Ok(new.out.file.flush()?)
}

/// The new file, made of literals and of parts of the basis.
struct NewFile<'f> {
    basis: File,
    out: Output<'f>,
}

impl PatchOutput for NewFile<'_> {
    fn literal(&mut self, data: &[u8]) -> io::Result<()> {
        self.out.file.write_all(data)
    }

    fn copy(&mut self, offset: u64, len: u64) -> io::Result<()> {
        self.out.append(&self.basis, offset, len)
    }
}

/// A file that is written, of bytes and of parts of other files.
struct Output<'f> {
    file: BufWriter<&'f File>,
    piece: Vec<u8>,
    copier: copy::RangeCopier<'f>,
}

impl<'f> Output<'f> {
    fn to(file: &'f File) -> Self {
        Self {
            file: BufWriter::with_capacity(PIECE, file),
            piece: vec![0; PIECE],
            copier: copy::RangeCopier::to(file),
        }
    }

    fn append(&mut self, source: &File, offset: u64, len: u64) -> io::Result<()> {
        if len >= PIECE as u64 {
            self.file.flush()?;
            return self.copier.append(source, offset, len, &mut || Ok(()));
        }
        let piece = &mut self.piece[..len as usize];
        source.read_exact_at(piece, offset)?;
        self.file.write_all(piece)
    }
}
