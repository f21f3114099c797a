//! The delta as a plan: the commands, and where each one's data comes from.
//!
//! The length of a delta is announced ahead of it, so the search must be over before the first byte
//! leaves. What the search found is kept here: a few bytes for each command, and as much of the literal
//! data as the caller allows. The rest of the literals are ranges of the source, to be read again.

use std::collections::TryReserveError;

use super::format::{Command, DELTA_MAGIC};

/// The longest literal command: older versions of librsync keep its length in an `int`.
pub const MAX_LITERAL_LEN: u64 = 1 << 30;

/// Bytes of the magic at the front and of the end command.
const FRAME_LEN: u64 = size_of_val(&DELTA_MAGIC) as u64 + 1;

/// One command of a delta, and where its data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanItem<'p> {
    /// `len` bytes of the basis, from `offset` on.
    Copy {
        /// Where in the basis.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Literal bytes, held in memory since the search saw them.
    Captured(&'p [u8]),
    /// Literal bytes that are to be read from the source once more.
    Streamed {
        /// Where in the source.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
}

impl PlanItem<'_> {
    /// The command that stands in the delta for this item.
    pub fn command(&self) -> Command {
        match *self {
            Self::Copy { offset, len } => Command::Copy { offset, len },
            Self::Captured(bytes) => Command::Literal {
                len: bytes.len() as u64,
            },
            Self::Streamed { len, .. } => Command::Literal { len },
        }
    }
}

/// What a delta is made of.
#[derive(Debug, Default)]
pub struct DeltaPlan {
    list: StepList,
    captured: Vec<u8>,
    source_len: u64,
    delta_len: u64,
}

impl DeltaPlan {
    /// The delta for a peer that has no basis: the whole source as literal data. Nothing is read.
    pub fn whole_file(source_len: u64) -> Self {
        let streamed = Step::new(StepKind::Streamed, source_len);
        Self {
            list: StepList::of_one(streamed),
            captured: Vec::new(),
            source_len,
            delta_len: FRAME_LEN.saturating_add(streamed.delta_len()),
        }
    }

    /// Bytes of the whole delta, from its magic to its end command.
    pub fn delta_len(&self) -> u64 {
        self.delta_len
    }

    /// Bytes of the source that the plan makes. A source that ended early gives less than was asked for.
    pub fn source_len(&self) -> u64 {
        self.source_len
    }

    /// The commands in their order, without the end command.
    pub fn items(&self) -> impl Iterator<Item = PlanItem<'_>> {
        Items {
            steps: self.list.iter(),
            current: None,
            captured: &self.captured,
            source_offset: 0,
        }
    }

    /// Bytes of memory that the plan holds.
    pub fn memory(&self) -> usize {
        self.captured.capacity() + self.list.bytes.capacity()
    }
}

/// Makes a plan from what a search finds, front to back.
#[derive(Debug)]
pub(crate) struct PlanBuilder {
    plan: DeltaPlan,
    /// The last step, still growing.
    open: Option<Step>,
    /// How much literal data may still be captured.
    literal_budget: usize,
    /// How long the list of steps may become.
    list_limit: usize,
}

impl PlanBuilder {
    /// Captures at most `literal_budget` bytes. A list of steps beyond `list_limit` bytes takes no more
    /// copies: memory stays bounded, the delta grows.
    pub(crate) fn new(literal_budget: usize, list_limit: usize) -> Self {
        let plan = DeltaPlan {
            delta_len: FRAME_LEN,
            ..DeltaPlan::default()
        };
        Self {
            plan,
            open: None,
            literal_budget,
            list_limit,
        }
    }

    /// The next bytes of the source are literal.
    pub(crate) fn literal(&mut self, bytes: &[u8]) -> Result<(), TryReserveError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.len() > self.literal_budget {
            // From here on all are streamed: captured pieces in between would only cost commands.
            self.literal_budget = 0;
            return self.grow(StepKind::Streamed, bytes.len());
        }
        self.capture(bytes)?;
        self.grow(StepKind::Captured, bytes.len())
    }

    /// The next bytes of the source are `bytes`, which stand in the basis from `offset` on.
    pub(crate) fn copy(&mut self, offset: u64, bytes: &[u8]) -> Result<(), TryReserveError> {
        if self.plan.list.bytes.len() >= self.list_limit {
            return self.literal(bytes);
        }
        self.grow(StepKind::Copy(offset), bytes.len())
    }

    pub(crate) fn finish(mut self) -> Result<DeltaPlan, TryReserveError> {
        self.close()?;
        Ok(self.plan)
    }

    fn capture(&mut self, bytes: &[u8]) -> Result<(), TryReserveError> {
        let captured = &mut self.plan.captured;
        let (used, room) = (captured.len(), self.literal_budget);
        if captured.capacity() - used < bytes.len() {
            // Doubling, but not beyond the budget.
            captured.try_reserve_exact(used.max(bytes.len()).min(room))?;
        }
        captured.extend_from_slice(bytes);
        self.literal_budget -= bytes.len();
        Ok(())
    }

    fn grow(&mut self, kind: StepKind, len: usize) -> Result<(), TryReserveError> {
        let len = len as u64;
        self.plan.source_len += len;
        match &mut self.open {
            Some(open) if open.continues_with(kind) => open.len += len,
            _ => {
                self.close()?;
                self.open = Some(Step::new(kind, len));
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), TryReserveError> {
        if let Some(step) = self.open.take() {
            self.plan.delta_len = self.plan.delta_len.saturating_add(step.delta_len());
            self.plan.list.push(step)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepKind {
    Captured,
    Streamed,
    /// From this offset of the basis.
    Copy(u64),
}

/// A part of the plan; a literal becomes several commands if it is very long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    kind: StepKind,
    len: u64,
}

impl Step {
    fn new(kind: StepKind, len: u64) -> Self {
        Self { kind, len }
    }

    fn continues_with(&self, next: StepKind) -> bool {
        match (self.kind, next) {
            (StepKind::Copy(offset), StepKind::Copy(next)) => offset + self.len == next,
            (kind, next) => kind == next,
        }
    }

    /// Bytes that the commands of this step and their data take in the delta.
    fn delta_len(&self) -> u64 {
        if let StepKind::Copy(offset) = self.kind {
            let command = Command::Copy {
                offset,
                len: self.len,
            };
            return command.encoded_len();
        }
        let literal = |len| Command::Literal { len }.encoded_len();
        let mut commands = self.len / MAX_LITERAL_LEN * literal(MAX_LITERAL_LEN);
        if self.len % MAX_LITERAL_LEN != 0 {
            commands += literal(self.len % MAX_LITERAL_LEN);
        }
        commands.saturating_add(self.len)
    }
}

/// Steps in few bytes each: the length in groups of seven bits, the kind in the low bits of the first;
/// a copy's offset as its distance from the end of the copy before.
#[derive(Debug, Default)]
struct StepList {
    bytes: Vec<u8>,
    copied_to: u64,
}

/// A step takes at most two numbers of ten bytes.
const MAX_STEP_LEN: usize = 20;

impl StepList {
    fn of_one(step: Step) -> Self {
        let mut list = Self::default();
        if step.len > 0 {
            list.append(step);
        }
        list
    }

    fn push(&mut self, step: Step) -> Result<(), TryReserveError> {
        self.bytes.try_reserve(MAX_STEP_LEN)?;
        self.append(step);
        Ok(())
    }

    fn append(&mut self, step: Step) {
        let kind = match step.kind {
            StepKind::Captured => 0,
            StepKind::Streamed => 1,
            StepKind::Copy(_) => 2,
        };
        self.append_number(u128::from(step.len) << 2 | kind);
        if let StepKind::Copy(offset) = step.kind {
            let distance = offset.wrapping_sub(self.copied_to) as i64;
            self.append_number(u128::from(zigzag(distance)));
            self.copied_to = offset.wrapping_add(step.len);
        }
    }

    fn append_number(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn iter(&self) -> StepIter<'_> {
        StepIter {
            bytes: self.bytes.iter(),
            copied_to: 0,
        }
    }
}

/// Small distances of either sign become small numbers.
fn zigzag(distance: i64) -> u64 {
    (distance << 1 ^ distance >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

struct StepIter<'p> {
    bytes: std::slice::Iter<'p, u8>,
    copied_to: u64,
}

impl StepIter<'_> {
    fn number(&mut self) -> Option<u128> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = *self.bytes.next()?;
            number |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }
}

impl Iterator for StepIter<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let first = self.number()?;
        let len = (first >> 2) as u64;
        let kind = match first & 3 {
            0 => StepKind::Captured,
            1 => StepKind::Streamed,
            _ => {
                let distance = unzigzag(self.number()? as u64);
                let offset = self.copied_to.wrapping_add(distance as u64);
                self.copied_to = offset.wrapping_add(len);
                StepKind::Copy(offset)
            }
        };
        Some(Step { kind, len })
    }
}

/// Steps, with long literals cut into commands that every librsync takes.
struct Items<'p> {
    steps: StepIter<'p>,
    current: Option<Step>,
    /// Captured bytes that no item had yet.
    captured: &'p [u8],
    source_offset: u64,
}

impl<'p> Items<'p> {
    fn item(&mut self, kind: StepKind, len: u64) -> PlanItem<'p> {
        let source_offset = self.source_offset;
        self.source_offset += len;
        match kind {
            StepKind::Copy(offset) => PlanItem::Copy { offset, len },
            StepKind::Streamed => PlanItem::Streamed {
                offset: source_offset,
                len,
            },
            StepKind::Captured => {
                let (own, rest) = self.captured.split_at(len as usize);
                self.captured = rest;
                PlanItem::Captured(own)
            }
        }
    }
}

impl<'p> Iterator for Items<'p> {
    type Item = PlanItem<'p>;

    fn next(&mut self) -> Option<PlanItem<'p>> {
        let step = self.current.take().or_else(|| self.steps.next())?;
        let len = match step.kind {
            StepKind::Copy(_) => step.len,
            _ => step.len.min(MAX_LITERAL_LEN),
        };
        if len < step.len {
            self.current = Some(Step::new(step.kind, step.len - len));
        }
        Some(self.item(step.kind, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder(literal_budget: usize) -> PlanBuilder {
        PlanBuilder::new(literal_budget, usize::MAX)
    }

    /// The length of the delta, counted item by item.
    fn counted(plan: &DeltaPlan) -> u64 {
        let item_len = |item: PlanItem<'_>| match item.command() {
            Command::Literal { len } => item.command().encoded_len() + len,
            command => command.encoded_len(),
        };
        5 + plan.items().map(item_len).sum::<u64>()
    }

    #[test]
    fn whole_files_are_one_range_cut_at_a_gigabyte() {
        let empty = DeltaPlan::whole_file(0);
        assert_eq!((empty.items().count(), empty.delta_len()), (0, 5));
        for len in [
            1,
            64,
            65,
            70_000,
            MAX_LITERAL_LEN,
            MAX_LITERAL_LEN + 1,
            5 << 30,
        ] {
            let plan = DeltaPlan::whole_file(len);
            assert_eq!(plan.delta_len(), counted(&plan));
            assert_eq!(plan.source_len(), len);
            let mut end = 0;
            for item in plan.items() {
                let PlanItem::Streamed { offset, len } = item else {
                    panic!("not streamed: {item:?}");
                };
                assert!(len <= MAX_LITERAL_LEN);
                assert_eq!(offset, end);
                end += len;
            }
            assert_eq!(end, len);
        }
        assert_eq!(DeltaPlan::whole_file(u64::MAX).delta_len(), u64::MAX);
    }

    #[test]
    fn neighbours_are_joined() {
        let mut builder = builder(100);
        builder.literal(b"ab").expect("memory");
        builder.literal(b"").expect("memory");
        builder.literal(b"c").expect("memory");
        builder.copy(10, &[0; 5]).expect("memory");
        builder.copy(15, &[0; 5]).expect("memory");
        builder.copy(15, &[0; 5]).expect("memory");
        let plan = builder.finish().expect("memory");
        let items: Vec<_> = plan.items().collect();
        assert_eq!(
            items,
            [
                PlanItem::Captured(b"abc"),
                PlanItem::Copy {
                    offset: 10,
                    len: 10
                },
                PlanItem::Copy { offset: 15, len: 5 },
            ]
        );
        assert_eq!(plan.delta_len(), 4 + 4 + 3 + 3 + 1);
        assert_eq!(plan.source_len(), 18);
    }

    #[test]
    fn literals_beyond_the_budget_are_streamed() {
        let mut builder = builder(6);
        builder.literal(b"abcd").expect("memory");
        builder.copy(0, &[0; 2048]).expect("memory");
        builder.literal(b"ef").expect("memory");
        builder.literal(b"ghi").expect("memory");
        builder.copy(0, &[0; 2048]).expect("memory");
        builder.literal(b"j").expect("memory");
        let plan = builder.finish().expect("memory");
        let items: Vec<_> = plan.items().collect();
        assert_eq!(
            items,
            [
                PlanItem::Captured(b"abcd"),
                PlanItem::Copy {
                    offset: 0,
                    len: 2048
                },
                PlanItem::Captured(b"ef"),
                PlanItem::Streamed {
                    offset: 2054,
                    len: 3
                },
                PlanItem::Copy {
                    offset: 0,
                    len: 2048
                },
                PlanItem::Streamed {
                    offset: 4105,
                    len: 1
                },
            ]
        );
        assert_eq!(plan.delta_len(), counted(&plan));
    }

    #[test]
    fn a_full_list_takes_no_more_copies() {
        let mut builder = PlanBuilder::new(0, 6);
        for i in 0..100 {
            builder.copy(i % 2 * 1000, &[0; 10]).expect("memory");
        }
        let plan = builder.finish().expect("memory");
        assert!(plan.list.bytes.len() <= 6 + MAX_STEP_LEN);
        assert_eq!(plan.source_len(), 1000);
        assert_eq!(plan.delta_len(), counted(&plan));
        assert!(matches!(
            plan.items().last(),
            Some(PlanItem::Streamed { .. })
        ));
    }

    #[test]
    fn steps_survive_the_list() {
        let steps = [
            Step::new(StepKind::Captured, 1),
            Step::new(StepKind::Copy(1 << 62), 1 << 62),
            Step::new(StepKind::Streamed, u64::MAX),
            Step::new(StepKind::Copy(0), 1),
            Step::new(StepKind::Copy(u64::MAX), u64::MAX),
            Step::new(StepKind::Copy(2048), 2048),
        ];
        let mut list = StepList::default();
        for step in steps {
            list.push(step).expect("memory");
        }
        assert!(list.iter().eq(steps));
    }
}
