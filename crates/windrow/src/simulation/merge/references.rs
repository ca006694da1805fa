//! The references to value files of a compaction's output.
//!
//! A [`ReferenceMerge`] goes with a [`Merge`](super::Merge) from cell to cell. In each it sums up the entries of each
//! input file of values, and divides them over the pieces of the output.

use std::collections::HashMap;

use crate::policy::{InputTransientLog, OutputPlan, TransientLogFate, whole};
use crate::simulation::key_space::{Count, Segment, Span, part_of};
use crate::simulation::references::References;
use crate::simulation::value_files::{MOVE_BYTES, ValueFiles};

/// What counts as read of a relocation table to resolve one pointer: a block.
const TABLE_BLOCK_BYTES: f64 = 4095.0;

/// How much of relocation tables a compaction keeps in memory.
const TABLES_KEPT_BYTES: f64 = (8 << 20) as f64;

/// A value file that inputs of a compaction refer to, or that it writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergedFile {
    /// Its place in [`ValueFiles`]; none for one that the compaction writes.
    pub(crate) file: Option<usize>,
    pub(crate) span: Span,
    is_log: bool,
    fate: TransientLogFate,
}

/// Entries by file and class. Most files have none.
#[derive(Debug, Clone, Default)]
struct Sums {
    classes: usize,
    entries: Vec<f64>,
    /// The places of the files with entries, each once, in the order in which they came.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
}

impl Sums {
    fn new(files: usize, classes: usize) -> Self {
        let mut sums = Self {
            classes,
            ..Self::default()
        };
        sums.grow(files);
        sums
    }

    fn grow(&mut self, files: usize) {
        self.entries.resize(files * self.classes, 0.0);
        self.is_touched.resize(files, false);
    }

    fn clear(&mut self) {
        for place in self.touched.drain(..) {
            self.entries[place * self.classes..][..self.classes].fill(0.0);
            self.is_touched[place] = false;
        }
    }

    fn of(&self, place: usize) -> &[f64] {
        &self.entries[place * self.classes..][..self.classes]
    }

    fn of_mut(&mut self, place: usize) -> &mut [f64] {
        if !self.is_touched[place] {
            self.is_touched[place] = true;
            self.touched.push(place);
        }
        &mut self.entries[place * self.classes..][..self.classes]
    }

    fn sum(&self, place: usize) -> f64 {
        self.of(place).iter().sum()
    }
}

/// One reference of a source.
#[derive(Debug, Clone, Copy)]
struct Reference {
    span: Span,
    /// In the references of the source.
    position: usize,
    /// In `ReferenceMerge::files`.
    place: usize,
    /// In `ReferenceMerge::tables`, if a relocation table resolves it.
    table: Option<usize>,
}

/// The references of a source, for cells that ascend.
#[derive(Debug, Default)]
struct SourceReferences {
    /// Ordered by the beginnings of their spans.
    references: Vec<Reference>,
    /// How many of them begin in the present cell or before it.
    begun: usize,
    /// Those of them that do not end before it.
    active: Vec<usize>,
}

impl SourceReferences {
    fn new(mut references: Vec<Reference>) -> Self {
        references.sort_by_key(|reference| reference.span.smallest);
        Self {
            references,
            ..Self::default()
        }
    }

    fn go_to(&mut self, span: Span) {
        let references = &self.references;
        self.active
            .retain(|&active| references[active].span.largest >= span.smallest);
        let begin = |next: &Reference| next.span.smallest <= span.largest;
        while references.get(self.begun).is_some_and(begin) {
            if references[self.begun].span.largest >= span.smallest {
                self.active.push(self.begun);
            }
            self.begun += 1;
        }
    }
}

/// A relocation table, and how many pointers it resolves.
#[derive(Debug, Clone, Copy)]
struct RelocationReads {
    table_bytes: f64,
    pointers: f64,
}

impl RelocationReads {
    /// Bytes that are read of the table. The part `kept` of the blocks is read once, and of the others one block for
    /// each pointer.
    fn read_bytes(&self, kept: f64) -> f64 {
        let block_bytes = TABLE_BLOCK_BYTES.min(self.table_bytes);
        let blocks = self.table_bytes / block_bytes;
        let met = blocks * -(-self.pointers / blocks).exp_m1();
        (kept * met + (1.0 - kept) * self.pointers) * block_bytes
    }
}

/// The references of a compaction's output. They name files by places in `files`.
#[derive(Debug, Default)]
pub(crate) struct ReferenceMerge {
    pub(crate) files: Vec<MergedFile>,
    sources: Vec<SourceReferences>,
    /// The relocation tables that resolve references of the sources.
    tables: Vec<RelocationReads>,
    /// The entries of each file and class in the present cell, and in the present piece.
    cell: Sums,
    piece: Sums,
    /// Entries in each file of those that were written.
    pub(crate) written: Vec<f64>,
    /// The new transient log file that is being written, and how many entries one holds.
    open_transient_log: Option<usize>,
    transient_file_entries: f64,
}

impl ReferenceMerge {
    /// For a compaction of `sources` by `plan`.
    pub(crate) fn new(
        files: &ValueFiles,
        sources: &[&Segment],
        classes: usize,
        plan: &OutputPlan<'_, u64>,
    ) -> Self {
        let mut merge = Self {
            transient_file_entries: plan.transient_file_bytes() as f64
                / files.transient_log_record(),
            ..Self::default()
        };
        let inputs = files.transient_logs_of(sources);
        let fate = |file| match inputs.get(&file) {
            Some(input) => plan.transient_log_fate(*input),
            None => plan.transient_log_fate(InputTransientLog::default()),
        };
        let (mut known, mut tables) = (HashMap::new(), HashMap::new());
        for source in sources {
            let mut references = Vec::with_capacity(source.references.files.len());
            for (position, &origin) in source.references.files.iter().enumerate() {
                let file = files.resolve(origin);
                let table = (file != origin).then(|| {
                    *tables.entry(origin).or_insert_with(|| {
                        merge.tables.push(RelocationReads {
                            table_bytes: files.file(origin).moves.max(1.0) * MOVE_BYTES,
                            pointers: 0.0,
                        });
                        merge.tables.len() - 1
                    })
                });
                let place = *known.entry(file).or_insert_with(|| {
                    let value = files.file(file);
                    let (span, is_log) = (value.span, value.is_log);
                    let fate = if is_log {
                        TransientLogFate::Stay
                    } else {
                        fate(file)
                    };
                    merge.files.push(MergedFile {
                        file: Some(file),
                        span,
                        is_log,
                        fate,
                    });
                    merge.files.len() - 1
                });
                let merged = &merge.files[place];
                references.push(Reference {
                    span: if merged.is_log {
                        source.span
                    } else {
                        merged.span
                    },
                    position,
                    place,
                    table,
                });
            }
            merge.sources.push(SourceReferences::new(references));
        }
        merge.cell = Sums::new(merge.files.len(), classes);
        merge.piece = merge.cell.clone();
        merge.written = vec![0.0; merge.files.len()];
        merge
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(super) fn begin_cell(&mut self) {
        self.cell.clear();
    }

    /// Adds the entries of `segment`, the source of that number, in the cell `span`, after the last cell. Newer
    /// segments leave the part `untouched` of each class.
    pub(super) fn add_source(
        &mut self,
        source: usize,
        segment: &Segment,
        span: Span,
        untouched: &[f64],
    ) {
        let source = &mut self.sources[source];
        source.go_to(span);
        for &active in &source.active {
            let reference = source.references[active];
            let part = part_of(span, segment.span, reference.span);
            if part <= 0.0 {
                continue;
            }
            let entries = segment.references.of(reference.position);
            let own = self.cell.of_mut(reference.place);
            for ((sum, entries), untouched) in own.iter_mut().zip(entries).zip(untouched) {
                let kept = entries * part * untouched;
                *sum += kept;
                if let Some(table) = reference.table {
                    self.tables[table].pointers += kept;
                }
            }
        }
    }

    /// The entries of the cell whose values will be in transient logs.
    pub(super) fn in_transient_logs(&self) -> f64 {
        let is_in_log = |file: &MergedFile| !file.is_log && file.fate != TransientLogFate::InPlace;
        let places = self.cell.touched.iter();
        let in_logs = places.filter(|&&place| is_in_log(&self.files[place]));
        in_logs.map(|&place| self.cell.sum(place)).sum()
    }

    /// Writes the part of the `cell` that `span` is to the present piece.
    pub(super) fn write(&mut self, cell: Span, span: Span) {
        let whole_part = span.width() / cell.width();
        for position in 0..self.cell.touched.len() {
            let place = self.cell.touched[position];
            let file = self.files[place];
            let part = if file.is_log {
                whole_part
            } else {
                part_of(span, cell, file.span)
            };
            let entries = self.cell.sum(place) * part;
            if entries <= 0.0 || file.fate == TransientLogFate::InPlace {
                continue;
            }
            let target = match file.fate {
                TransientLogFate::Rewrite => self.new_transient_log(span, entries),
                TransientLogFate::Stay | TransientLogFate::InPlace => place,
            };
            self.written[target] += entries;
            let sums = self.piece.of_mut(target).iter_mut();
            for (sum, entries) in sums.zip(self.cell.of(place)) {
                *sum += entries * part;
            }
        }
    }

    /// The new transient log file for this many values in `span`.
    fn new_transient_log(&mut self, span: Span, entries: f64) -> usize {
        let is_full = |file: usize| self.written[file] + entries > self.transient_file_entries;
        let file = match self.open_transient_log {
            Some(file) if !is_full(file) => file,
            _ => {
                self.files.push(MergedFile {
                    file: None,
                    span,
                    is_log: false,
                    fate: TransientLogFate::Stay,
                });
                self.written.push(0.0);
                self.piece.grow(self.files.len());
                self.files.len() - 1
            }
        };
        self.open_transient_log = Some(file);
        self.files[file].span.largest = self.files[file].span.largest.max(span.largest);
        file
    }

    /// Ends a piece. Returns its references, and notes in `count` how many of its entries are in transient logs.
    pub(super) fn end_piece(&mut self, count: &mut Count) -> References {
        let mut references = References::default();
        count.in_transient_logs = 0.0;
        self.piece.touched.sort_unstable();
        for &place in &self.piece.touched {
            let sum = self.piece.sum(place);
            if sum <= 0.0 {
                continue;
            }
            references.push(place, self.piece.of(place).iter().copied());
            if !self.files[place].is_log {
                count.in_transient_logs += sum;
            }
        }
        self.piece.clear();
        references
    }

    /// Bytes that a compaction of the keys `span` reads of transient logs and of relocation tables.
    pub(crate) fn read_bytes(&self, files: &ValueFiles, span: Span) -> u64 {
        let is_read = |file: &&MergedFile| !file.is_log && file.fate != TransientLogFate::Stay;
        let bytes = |file: &MergedFile| {
            let length = file.file.map_or(0.0, |file| files.file(file).bytes());
            length * part_of(span, file.span, file.span)
        };
        let transient_logs = self.files.iter().filter(is_read).map(bytes).sum::<f64>();
        let all: f64 = self.tables.iter().map(|table| table.table_bytes).sum();
        let kept = (TABLES_KEPT_BYTES / all.max(1.0)).min(1.0);
        let tables = self.tables.iter().map(|table| table.read_bytes(kept));
        whole(transient_logs + tables.sum::<f64>())
    }
}
