//! A compaction of a simulated tree, by the plan that the engine would execute.

use super::files::{Tree, Units};
use crate::base::{Cause, FileNumber};
use crate::filter::FILTER_UNITS_MAX;
use crate::policy::{Compaction, FileSummary, OutputPlan, OutputUnits, whole};
use crate::simulation::key_space::{Segment, Span};
use crate::simulation::merge::{Merge, Piece, ReferenceMerge};

/// No filters.
pub(super) const NO_UNITS: Units = [0.0; FILTER_UNITS_MAX];

/// The output of a compaction.
struct Output {
    pieces: Vec<Piece>,
    /// What the pieces refer to, by places in it.
    references: ReferenceMerge,
    /// The keys of the inputs.
    span: Span,
    units: OutputUnits,
    /// The bytes that it reads of tables.
    read: u64,
}

impl Tree<'_> {
    /// Executes a compaction, and returns the entries written.
    pub(super) fn compact(&mut self, compaction: &Compaction<u64>) -> u64 {
        let target = compaction.claim.level;
        let Output {
            mut pieces,
            references,
            span,
            units,
            read: bytes_read,
        } = self.merge(compaction);
        self.write_values(target, &references, span, &mut pieces);
        let (read, written) = compaction.purpose.causes();
        let upper = self.take(compaction.level, &compaction.upper);
        let lower = self.take(target, &compaction.lower);
        self.io_stats.add(target, read, bytes_read);
        for file in upper.iter().chain(&lower) {
            self.release(file.number);
        }
        let mut entries = 0;
        let mut files = Vec::new();
        for piece in pieces {
            entries += whole(piece.segment.count.entries);
            match piece.target {
                None => {
                    let file = self.file(piece.segment, units.written_anew);
                    self.io_stats.add(target, written, file.bytes);
                    files.push(file);
                }
                Some(number) => self.append(target, number, piece.segment, units.appended),
            }
        }
        self.cursors[compaction.level] = Some(compaction.claim.largest);
        self.install(target, files);
        entries
    }

    /// Merges the inputs of `compaction`.
    fn merge(&self, compaction: &Compaction<u64>) -> Output {
        let plan = OutputPlan::new(&self.summary, compaction, &self.options);
        let segments = |file: &FileSummary<u64>| self.segments(file.number);
        let uppers: Vec<&Segment> = plan.upper().flat_map(segments).collect();
        let bytes = |from: Option<&u64>, to: Option<&u64>| {
            let between = Span {
                smallest: from.copied().unwrap_or(0),
                largest: to.copied().unwrap_or(u64::MAX),
            };
            let parts = uppers.iter().map(|segment| {
                let Some(inside) = segment.span.common(between) else {
                    return 0.0;
                };
                let bytes = self
                    .sizes
                    .merged_cut_bytes(segment.count, plan.is_in_place());
                bytes * (inside.width() / segment.span.width())
            });
            whole(parts.sum())
        };
        let cutter = plan.cutter(bytes);
        let ends = cutter.ends().iter();
        let mut begins: Vec<u64> = ends.filter_map(|end| end.checked_add(1)).collect();
        for file in plan.lower() {
            begins.push(file.smallest);
            begins.extend(file.largest.checked_add(1));
        }
        let rewritten = plan
            .lower()
            .filter(|file| !compaction.targets.contains(&file.number));
        let lowers = rewritten.flat_map(segments);
        let sources: Vec<&Segment> = uppers.iter().copied().chain(lowers).collect();
        let classes = self.key_space.classes.len();
        let references = ReferenceMerge::new(&self.values, &sources, classes, &plan);
        let deeper = plan.deeper_levels();
        let merge = Merge::new(
            &self.key_space,
            self.sizes,
            cutter,
            deeper,
            references,
            self.now,
        );
        let (pieces, references) = merge.run(&sources, &mut begins);
        let no_units = OutputUnits {
            written_anew: NO_UNITS,
            appended: NO_UNITS,
        };
        Output {
            pieces,
            references,
            read: self.bytes_read(&plan, compaction),
            span: Span {
                smallest: sources.iter().map(|it| it.span.smallest).min().unwrap_or(0),
                largest: sources.iter().map(|it| it.span.largest).max().unwrap_or(0),
            },
            units: match &self.filters {
                Some(filters) => plan.filter_units(filters.price),
                None => no_units,
            },
        }
    }

    /// The bytes that a compaction reads of tables: of each file as many as the chance is that no range tombstone covers
    /// all of it. Files that refer to value logs are read.
    fn bytes_read(&self, plan: &OutputPlan<'_, u64>, compaction: &Compaction<u64>) -> u64 {
        let rewritten = plan
            .lower()
            .filter(|file| !compaction.targets.contains(&file.number));
        let mut newer = 0.0;
        let mut bytes = 0.0;
        let mut read = |file: &FileSummary<u64>, newer: f64| {
            let span = Span {
                smallest: file.smallest,
                largest: file.largest,
            };
            let unread = match file.log_bytes {
                0 => self.key_space.covers_all(span, newer),
                _ => 0.0,
            };
            bytes += file.bytes as f64 * (1.0 - unread);
        };
        let ranges = |file: &FileSummary<u64>| -> f64 {
            self.segments(file.number)
                .map(|it| it.range_deletes)
                .fold(0.0, f64::max)
        };
        for file in plan.upper() {
            read(file, if compaction.level == 0 { newer } else { 0.0 });
            newer = if compaction.level == 0 {
                newer + ranges(file)
            } else {
                f64::max(newer, ranges(file))
            };
        }
        for file in rewritten {
            read(file, newer);
        }
        whole(bytes.round())
    }

    /// The segments of a file, newest first.
    fn segments(&self, number: FileNumber) -> impl Iterator<Item = &Segment> {
        self.contents[&number].segments.iter().rev()
    }

    /// Reads and writes the values of `pieces` in transient logs, and gives `pieces` the places of their files.
    fn write_values(
        &mut self,
        target: usize,
        references: &ReferenceMerge,
        span: Span,
        pieces: &mut [Piece],
    ) {
        if references.is_empty() {
            return;
        }
        let read = references.read_bytes(&self.values, span);
        self.io_stats.add(target, Cause::TransientLogRead, read);
        let mut files = Vec::new();
        for (merged, entries) in references.files.iter().zip(&references.written) {
            files.push(merged.file.unwrap_or_else(|| {
                let file = self.values.add_transient_log(merged.span, 1.0, *entries);
                let bytes = whole(self.values.file(file).bytes());
                self.io_stats.add(target, Cause::TransientLog, bytes);
                file
            }));
        }
        for piece in pieces {
            for file in &mut piece.segment.references.files {
                *file = files[*file];
            }
        }
    }
}
