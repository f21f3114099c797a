//! The parts of the delta engine, each by itself, in memory. Short by default: `--measurement-time 10` and
//! the like make it longer.
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "criterion's macros document nothing")]

#[path = "../tests/common/rdiff.rs"]
mod common;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use csync_rs::rdiff::{DeltaPlan, Patcher, SignatureHeader};

use common::{NewFile, delta, index, kinds, noise, signature};

const LEN: usize = 16 << 20;

fn signatures(criterion: &mut Criterion) {
    let basis = noise(1, LEN);
    let mut group = criterion.benchmark_group("signature");
    group.throughput(Throughput::Bytes(LEN as u64));
    for header in kinds(2048) {
        let name = format!("{:?} {:?}", header.weak, header.strong);
        group.bench_function(name, |bench| {
            bench.iter(|| signature(header, black_box(&basis)))
        });
    }
}

fn indexes(criterion: &mut Criterion) {
    let signature = signature(SignatureHeader::CSYNC2, &noise(1, LEN));
    let mut group = criterion.benchmark_group("index");
    group.throughput(Throughput::Elements(LEN as u64 / 2048));
    group.bench_function("blocks", |bench| {
        bench.iter(|| index(black_box(&signature)))
    });
}

fn deltas(criterion: &mut Criterion) {
    let basis = noise(1, LEN);
    let mut edited = basis.clone();
    for at in (0..LEN).step_by(LEN / 64) {
        edited[at] ^= 1;
    }
    edited.insert(100, 7);
    let sources = [
        ("equal", basis.clone()),
        ("edited", edited),
        ("unrelated", noise(2, LEN)),
        ("zeroes", vec![0; LEN]),
    ];
    let mut group = criterion.benchmark_group("delta");
    group.throughput(Throughput::Bytes(LEN as u64));
    for header in kinds(2048).into_iter().step_by(2) {
        let index = index(&signature(header, &basis));
        for (name, source) in &sources {
            group.bench_function(format!("{name} {:?}", header.weak), |bench| {
                bench.iter(|| {
                    let mut reader = black_box(&source[..]);
                    DeltaPlan::scan(&index, &mut reader, source.len() as u64, 0).expect("a plan")
                });
            });
        }
    }
}

fn patches(criterion: &mut Criterion) {
    let basis = noise(1, LEN);
    let signature = signature(SignatureHeader::CSYNC2, &basis);
    let mut group = criterion.benchmark_group("patch");
    group.throughput(Throughput::Bytes(LEN as u64));
    for (name, source) in [("equal", basis.clone()), ("unrelated", noise(2, LEN))] {
        let delta = delta(&signature, &source);
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let bytes = Vec::with_capacity(LEN);
                let mut new = NewFile {
                    basis: &basis,
                    bytes,
                };
                let mut patcher = Patcher::new(LEN as u64);
                patcher
                    .feed(black_box(&delta), &mut new)
                    .expect("a good delta");
                new
            });
        });
    }
}

fn short() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = rdiff;
    config = short();
    targets = signatures, indexes, deltas, patches
}
criterion_main!(rdiff);
