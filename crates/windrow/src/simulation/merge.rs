//! A merge on numbers: what its output holds, and to which files it goes.
//!
//! The ends of all segments that take part, and of files below, divide the keys into *cells*. In each, every
//! segment lies evenly, so what is left of them together is known; and only where a cell begins, or a file
//! is full, can the output go elsewhere.

use super::contents::{Count, Mass, Segment, Span, Universe};
use super::values::{Carried, References};
use crate::base::FileNumber;
use crate::policy::{DeeperLevels, OutputCutter, TRANSIENT_PARTS};

/// Less than so many entries are none.
const ENTRIES_MIN: f64 = 0.5;

/// A part of the output: a segment, new or to be appended to a file.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) target: Option<FileNumber>,
    pub(super) segment: Segment,
}

/// Bytes on disk of entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntrySizes {
    pub(super) value: f64,
    pub(super) tombstone: f64,
    /// What an entry takes less while its value is in a run.
    pub(super) saved_by_transient_log: f64,
    /// What the value takes in the run.
    pub(super) in_run: f64,
    /// Which part of the values can be in runs.
    pub(super) medium_fraction: f64,
}

impl EntrySizes {
    pub(super) fn bytes(self, count: Count) -> f64 {
        let values = count.entries - count.tombstones;
        values * self.value + count.tombstones * self.tombstone
            - self.in_transient_logs(count) * self.saved_by_transient_log
    }

    /// What counts of them where files are cut to a size.
    pub(super) fn cut_bytes(self, count: Count) -> f64 {
        self.merged_cut_bytes(count, false)
    }

    /// The same of what a merge of them writes, which puts values in runs in place or leaves them there.
    pub(super) fn merged_cut_bytes(self, count: Count, is_in_place: bool) -> f64 {
        let parts = if is_in_place { 1 } else { TRANSIENT_PARTS };
        self.bytes(count) + self.in_transient_logs(count) * self.in_run / parts as f64
    }

    /// The entries whose values are in runs. References are taken to lie evenly between the ends of their run, so
    /// that in one place they can come to more than there is.
    fn in_transient_logs(self, count: Count) -> f64 {
        let values = count.entries - count.tombstones;
        count.in_transient_logs.min(values * self.medium_fraction)
    }
}

/// A merge under way.
pub(super) struct Merge<'a> {
    pub(super) universe: &'a Universe,
    pub(super) sizes: EntrySizes,
    pub(super) cutter: OutputCutter<u64>,
    pub(super) deeper: DeeperLevels<u64>,
    carried: Carried,
    present: Piece,
    pieces: Vec<Piece>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(
        universe: &'a Universe,
        sizes: EntrySizes,
        cutter: OutputCutter<u64>,
        deeper: DeeperLevels<u64>,
        carried: Carried,
    ) -> Self {
        Self {
            universe,
            sizes,
            cutter,
            deeper,
            carried,
            present: empty(universe, None),
            pieces: Vec::new(),
        }
    }

    /// Merges `sources`, newest first, those that the values apart are of. Cells begin at each of `begins`,
    /// too, which ascend.
    pub(super) fn run(
        mut self,
        sources: &[&Segment],
        begins: &mut Vec<u64>,
    ) -> (Vec<Piece>, Carried) {
        let mut untouched = vec![1.0; self.universe.classes.len()];
        for_each_cell(self.universe, sources, begins, |span, active, masses| {
            if !self.carried.is_empty() {
                self.carry(sources, span, active, &mut untouched);
            }
            let has_tombstones = masses.iter().any(|mass| mass.tombstones > 0.0);
            if has_tombstones && !self.deeper.may_hold(&span.smallest) {
                for mass in masses.iter_mut() {
                    mass.spend();
                }
            }
            let mut count = self.universe.count(masses, span.width());
            count.in_transient_logs = self.carried.in_transient_logs();
            self.write(span, masses, count);
        });
        self.close(None);
        (self.pieces, self.carried)
    }

    /// Takes what the sources that are `active` in a cell have apart.
    fn carry(&mut self, sources: &[&Segment], span: Span, active: &[usize], untouched: &mut [f64]) {
        self.carried.begin();
        untouched.fill(1.0);
        for &source in active {
            let segment = sources[source];
            self.carried.take(source, segment, span, untouched);
            let part = span.width() / segment.span.width();
            let classes = self.universe.classes.iter().zip(&segment.masses);
            for (untouched, (class, mass)) in untouched.iter_mut().zip(classes) {
                *untouched *= (-mass.draws * part / (class.keys * span.width())).exp();
            }
        }
    }

    /// Writes a cell.
    fn write(&mut self, span: Span, masses: &[Mass], count: Count) {
        let (width, bytes) = (span.width(), self.sizes.cut_bytes(count));
        let mut smallest = span.smallest;
        loop {
            let held = self.sizes.cut_bytes(self.present.segment.count);
            let place = self
                .cutter
                .place(&smallest, crate::policy::whole(held.round()));
            if place.begins {
                self.close(place.target);
            }
            self.present.target = place.target;
            let held = self.sizes.cut_bytes(self.present.segment.count);
            let space = (self.cutter.file_bytes() as f64 - held).max(1.0);
            let rest = Span {
                smallest,
                largest: span.largest,
            };
            let rest_bytes = bytes * (rest.width() / width);
            let ends = if place.target.is_some() || rest_bytes <= space {
                span.largest
            } else {
                let keys = (span.largest - smallest) as f64 * (space / rest_bytes);
                (smallest + crate::policy::whole(keys)).min(span.largest)
            };
            let own = Span {
                smallest,
                largest: ends,
            };
            self.add(own, masses, count, own.width() / width);
            if !self.carried.is_empty() {
                self.carried.write(span, own);
            }
            if ends == span.largest {
                return;
            }
            smallest = ends + 1;
        }
    }

    fn add(&mut self, span: Span, masses: &[Mass], count: Count, part: f64) {
        let segment = &mut self.present.segment;
        if segment.count.entries <= 0.0 {
            segment.span.smallest = span.smallest;
        }
        segment.span.largest = span.largest;
        segment.count += count.part(part);
        for (held, own) in segment.masses.iter_mut().zip(masses) {
            *held += own.part(part);
        }
    }

    /// Ends the present piece, and goes on for `target`.
    fn close(&mut self, target: Option<FileNumber>) {
        let next = empty(self.universe, target);
        let mut piece = std::mem::replace(&mut self.present, next);
        if !self.carried.is_empty() {
            let segment = &mut piece.segment;
            segment.references = self.carried.close(&mut segment.count);
        }
        if piece.segment.count.entries >= ENTRIES_MIN {
            self.pieces.push(piece);
        }
    }
}

/// The entries that `sources`, newest first, come to together.
pub(super) fn entries_together(universe: &Universe, sources: &[&Segment]) -> f64 {
    let mut entries = 0.0;
    for_each_cell(universe, sources, &mut Vec::new(), |span, _, masses| {
        entries += universe.count(masses, span.width()).entries;
    });
    entries
}

/// Goes through the cells of `sources`, newest first, with those that reach into each and what they come to
/// there. Cells begin at each of
/// `begins`, too, which ascend.
fn for_each_cell(
    universe: &Universe,
    sources: &[&Segment],
    begins: &mut Vec<u64>,
    mut visit: impl FnMut(Span, &[usize], &mut [Mass]),
) {
    for source in sources {
        begins.push(source.span.smallest);
        begins.extend(source.span.largest.checked_add(1));
    }
    begins.sort_unstable();
    begins.dedup();
    let mut by_begin: Vec<usize> = (0..sources.len()).collect();
    by_begin.sort_by_key(|&source| sources[source].span.smallest);
    let mut waiting = by_begin.into_iter().peekable();
    // Sources that reach into the present cell, newest first.
    let mut active: Vec<usize> = Vec::new();
    let mut masses = vec![Mass::default(); universe.classes.len()];
    for (position, &smallest) in begins.iter().enumerate() {
        let next = begins.get(position + 1);
        let largest = next.map_or(u64::MAX, |next| next - 1);
        active.retain(|&source| sources[source].span.largest >= smallest);
        while let Some(source) =
            waiting.next_if(|&source| sources[source].span.smallest <= smallest)
        {
            let place = active.partition_point(|&other| other < source);
            active.insert(place, source);
        }
        if active.is_empty() {
            continue;
        }
        let span = Span { smallest, largest };
        unite(
            universe,
            active.iter().map(|&source| sources[source]),
            span,
            &mut masses,
        );
        visit(span, &active, &mut masses);
    }
}

/// What the segments `covering` a cell, newest first, come to in it.
fn unite<'s>(
    universe: &Universe,
    covering: impl Iterator<Item = &'s Segment>,
    span: Span,
    masses: &mut [Mass],
) {
    masses.fill(Mass::default());
    let width = span.width();
    for segment in covering {
        let part = width / segment.span.width();
        let classes = universe.classes.iter().zip(&segment.masses);
        for (mass, (class, own)) in masses.iter_mut().zip(classes) {
            mass.put_over(own.part(part), class.keys * width);
        }
    }
}

fn empty(universe: &Universe, target: Option<FileNumber>) -> Piece {
    Piece {
        target,
        segment: Segment {
            span: Span::ALL,
            masses: vec![Mass::default(); universe.classes.len()].into(),
            count: Count::default(),
            references: References::default(),
        },
    }
}
