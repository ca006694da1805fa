//! A merge on numbers: what its output holds, and to which files it goes.
//!
//! The ends of all segments that take part, and of files below, divide the keys into [cells]. In each cell every
//! segment lies evenly, so the mass of their merge is known. The output can go to another file only where a cell begins
//! or a file is full.

mod cells;
mod references;

pub(super) use cells::merged_entries;
use cells::{Purpose, for_each_cell};
pub(super) use references::ReferenceMerge;

use super::entry_sizes::EntrySizes;
use super::key_space::{Count, KeySpace, Segment, Span};
use super::mass::Mass;
use super::references::References;
use crate::base::FileNumber;
use crate::policy::{DeeperLevels, OutputCutter, whole};

/// Fewer entries are none.
const ENTRIES_MIN: f64 = 0.5;

/// A part of the output: a segment, new or to be appended to a file.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) target: Option<FileNumber>,
    pub(super) segment: Segment,
}

/// A running merge.
pub(super) struct Merge<'a> {
    key_space: &'a KeySpace,
    sizes: EntrySizes,
    cutter: OutputCutter<u64>,
    deeper: DeeperLevels<u64>,
    references: ReferenceMerge,
    /// The time, for entries that expire.
    now: f64,
    present: Piece,
    pieces: Vec<Piece>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(
        key_space: &'a KeySpace,
        sizes: EntrySizes,
        cutter: OutputCutter<u64>,
        deeper: DeeperLevels<u64>,
        references: ReferenceMerge,
        now: f64,
    ) -> Self {
        Self {
            now,
            key_space,
            sizes,
            cutter,
            deeper,
            references,
            present: empty(key_space, None),
            pieces: Vec::new(),
        }
    }

    /// Merges `sources`, newest first, whose references it has. Cells begin at each of `begins`, too, which ascend.
    pub(super) fn run(
        mut self,
        sources: &[&Segment],
        begins: &mut Vec<u64>,
    ) -> (Vec<Piece>, ReferenceMerge) {
        let mut untouched = vec![1.0; self.key_space.classes.len()];
        let key_space = self.key_space;
        let purpose = Purpose::Rewrite { now: self.now };
        for_each_cell(
            key_space,
            sources,
            begins,
            purpose,
            |span, active, masses| {
                if !self.references.is_empty() {
                    self.add_references(sources, span, active, &mut untouched);
                }
                let ranges = active.iter().map(|&source| sources[source].range_deletes);
                let mut range_deletes: f64 = ranges.sum();
                let depends = |mass: &Mass| mass.tombstones > 0.0 || mass.operands > 0.0;
                let is_asked = range_deletes > 0.0 || masses.iter().any(depends);
                if is_asked && !self.deeper.may_hold(&span.smallest) {
                    for (mass, class) in masses.iter_mut().zip(&key_space.classes) {
                        mass.end_below(class.keys * span.width());
                    }
                    range_deletes = 0.0;
                }
                let mut count = key_space.count(masses, span.width());
                count.in_transient_logs = self.references.in_transient_logs();
                self.write(span, masses, count, range_deletes);
            },
        );
        self.end_piece(None);
        (self.pieces, self.references)
    }

    /// Adds the references of the sources that are `active` in a cell.
    fn add_references(
        &mut self,
        sources: &[&Segment],
        span: Span,
        active: &[usize],
        untouched: &mut [f64],
    ) {
        self.references.begin_cell();
        untouched.fill(1.0);
        let mut kept = untouched.to_vec();
        for &source in active {
            let segment = sources[source];
            let part = span.width() / segment.span.width();
            let classes = || self.key_space.classes.iter().zip(&segment.masses);
            // What has expired refers to nothing.
            for (kept, (untouched, (class, mass))) in
                kept.iter_mut().zip(untouched.iter().zip(classes()))
            {
                let keys = class.keys * segment.span.width();
                let values = mass.entries(keys) - mass.tombstones - mass.operands;
                let expired = mass.lifetimes.expired(self.now) / values.max(f64::MIN_POSITIVE);
                *kept = untouched * (1.0 - expired.min(1.0));
            }
            self.references.add_source(source, segment, span, &kept);
            let covered = self.key_space.covered(segment.range_deletes);
            for (untouched, (class, mass)) in untouched.iter_mut().zip(classes()) {
                let drawn = mass.draws * part / (class.keys * span.width());
                *untouched *= (-drawn).exp() * (1.0 - covered);
            }
        }
    }

    /// Writes a cell.
    fn write(&mut self, span: Span, masses: &[Mass], count: Count, range_deletes: f64) {
        let (width, bytes) = (span.width(), self.sizes.cut_bytes(count));
        let mut smallest = span.smallest;
        loop {
            let held = self.sizes.cut_bytes(self.present.segment.count);
            let place = self.cutter.place(&smallest, whole(held.round()));
            if place.begins {
                self.end_piece(place.target);
            }
            self.present.target = place.target;
            let held = self.sizes.cut_bytes(self.present.segment.count);
            let space = (self.cutter.file_bytes() as f64 - held).max(1.0);
            let rest = Span {
                smallest,
                largest: span.largest,
            };
            let rest_bytes = bytes * (rest.width() / width);
            let largest = if place.target.is_some() || rest_bytes <= space {
                span.largest
            } else {
                let keys = (span.largest - smallest) as f64 * (space / rest_bytes);
                (smallest + whole(keys)).min(span.largest)
            };
            let own = Span { smallest, largest };
            self.add(own, masses, count, own.width() / width);
            self.present.segment.range_deletes += range_deletes * own.width();
            if !self.references.is_empty() {
                self.references.write(span, own);
            }
            if largest == span.largest {
                return;
            }
            smallest = largest + 1;
        }
    }

    fn add(&mut self, span: Span, masses: &[Mass], count: Count, part: f64) {
        let segment = &mut self.present.segment;
        if segment.count.entries <= 0.0 && segment.range_deletes <= 0.0 {
            segment.span.smallest = span.smallest;
        }
        segment.span.largest = span.largest;
        segment.count += count.part(part);
        for (held, own) in segment.masses.iter_mut().zip(masses) {
            *held += own.part(part);
        }
    }

    /// Ends the present piece, and begins one for `target`.
    fn end_piece(&mut self, target: Option<FileNumber>) {
        let next = empty(self.key_space, target);
        let mut piece = std::mem::replace(&mut self.present, next);
        // Until now it was a sum over the keys.
        piece.segment.range_deletes /= piece.segment.span.width();
        self.key_space.count_range_tombstones(&mut piece.segment);
        if !self.references.is_empty() {
            let segment = &mut piece.segment;
            segment.references = self.references.end_piece(&mut segment.count);
        }
        if piece.segment.count.entries >= ENTRIES_MIN {
            self.pieces.push(piece);
        }
    }
}

fn empty(key_space: &KeySpace, target: Option<FileNumber>) -> Piece {
    Piece {
        target,
        segment: Segment {
            span: Span::ALL,
            masses: vec![Mass::default(); key_space.classes.len()].into(),
            range_deletes: 0.0,
            count: Count::default(),
            references: References::default(),
        },
    }
}
