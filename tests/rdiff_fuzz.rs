//! The fuzz targets of `fuzz/targets.rs`, fed with mutations of good inputs from a seed that is printed when
//! something is found. `FUZZ_SECONDS` says for how long, `FUZZ_SEED` where to begin; `--nocapture` shows how many
//! inputs it were.

#[path = "common/rdiff.rs"]
mod common;
#[path = "../fuzz/targets.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Numbers without a pattern, the same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % limit.max(1) as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        // The ends of ranges are where errors live.
        const EDGES: [u8; 8] = [0, 1, 0x40, 0x41, 0x54, 0x7f, 0x80, 0xff];
        match self.below(2) {
            0 => EDGES[self.below(EDGES.len())],
            _ => self.below(256) as u8,
        }
    }
}

fn mutate(input: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    let at = chance.below(input.len() + 1);
    let len = chance.below(16).min(input.len() - at);
    match chance.below(7) {
        0 => input.truncate(at),
        1 => input.insert(at, chance.byte()),
        2 => drop(input.drain(at..at + len)),
        3 => input[at..at + len].fill(chance.byte()),
        4 => input[at..at + len]
            .iter_mut()
            .for_each(|byte| *byte ^= 1 << chance.below(8)),
        5 => {
            let part = input[at..at + len].to_vec();
            input.splice(at..at, part);
        }
        _ => {
            let from = chance.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
    }
    input.truncate(20_000);
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect(name))
}

fn feed(target: fn(&[u8]), mut pool: Vec<Vec<u8>>) {
    pool.iter().for_each(|input| target(input));
    let seconds = number("FUZZ_SECONDS", 1);
    let (first, started) = (number("FUZZ_SEED", 1), Instant::now());
    let mut seed = first;
    while started.elapsed() < Duration::from_secs(seconds) {
        let mut chance = Chance(seed << 20);
        let mut input = pool[chance.below(pool.len())].clone();
        for _ in 0..=chance.below(6) {
            let other = pool[chance.below(pool.len())].clone();
            mutate(&mut input, &other, &mut chance);
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
            panic_with(seed, &input);
            resume_unwind(panic);
        }
        // Some mutations become the ground of others.
        if chance.below(50) == 0 {
            let old = chance.below(64);
            match pool.get_mut(8 + old) {
                Some(place) => *place = input,
                None => pool.push(input),
            }
        }
        seed += 1;
    }
    say_how_many(seed - first);
}

/// How much was tried, for whoever runs it for long.
#[allow(clippy::print_stderr, reason = "for whoever asks for it")]
fn say_how_many(inputs: u64) {
    eprintln!("fuzzing: {inputs} mutated inputs");
}

/// Says what was found, by way of the test's captured output.
#[allow(clippy::print_stderr, reason = "for whoever reads the failure")]
fn panic_with(seed: u64, input: &[u8]) {
    eprintln!("found with FUZZ_SEED={seed}: {input:02x?}");
}

#[test]
fn signatures() {
    let [seeds, ..] = targets::seeds();
    feed(targets::signature_bytes, seeds);
}

#[test]
fn deltas() {
    let [_, seeds, _] = targets::seeds();
    feed(targets::delta_bytes, seeds);
}

#[test]
fn patches() {
    let [.., seeds] = targets::seeds();
    feed(targets::patch_bytes, seeds);
}
