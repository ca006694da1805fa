//! A chunk of value files: neighbouring files of the manifest's state, with their handles and sums over them.
//!
//! I1. The handles are those of the files of the state's chunk, in the same order.
//!
//! Concurrency: immutable; shared freely.

use std::sync::Arc;

use crate::base::SequenceNumber;
use crate::base::sync::Shared;
use crate::manifest::handle::ValueHandle;
use crate::manifest::keyspace::KeyspaceState;
use crate::manifest::values::{NumberChunk, ValueFileKind, ValueFileState};
use crate::value::{LogSummary, SummedLogs};

/// Sums over value files.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ValueSums {
    /// The value logs and GC outputs.
    pub(crate) logs: SummedLogs,
    /// The files of transient logs, their bytes, and those of their records that tables refer to.
    pub(crate) transient_files: usize,
    pub(crate) transient_length: u64,
    pub(crate) transient_bytes: u64,
    /// The bytes that tables refer to through relocation tables.
    pub(crate) relocated_bytes: u64,
    /// The bytes of all files except value logs that are not sealed.
    pub(super) complete_bytes: u64,
}

impl ValueSums {
    /// The sums over all of both.
    pub(super) fn plus(self, other: Self) -> Self {
        let sum = u64::saturating_add;
        Self {
            logs: self.logs.plus(other.logs),
            transient_files: self.transient_files + other.transient_files,
            transient_length: sum(self.transient_length, other.transient_length),
            transient_bytes: sum(self.transient_bytes, other.transient_bytes),
            relocated_bytes: sum(self.relocated_bytes, other.relocated_bytes),
            complete_bytes: sum(self.complete_bytes, other.complete_bytes),
        }
    }

    fn of(file: &ValueFileState, log: Option<&LogSummary>) -> Self {
        let if_so = |is_so, bytes: u64| if is_so { bytes } else { 0 };
        let is_transient = file.kind == ValueFileKind::TransientLog;
        Self {
            logs: log.into_iter().collect(),
            transient_files: usize::from(is_transient),
            transient_length: if_so(is_transient, file.file.length),
            transient_bytes: if_so(is_transient, file.referred.bytes),
            relocated_bytes: file.through.bytes,
            complete_bytes: if_so(file.kind != ValueFileKind::OpenLog, file.file.end),
        }
    }
}

/// Which entries need value logs: see the fields of [`KeyspaceState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Needs {
    pub(super) settled: SequenceNumber,
    pub(super) flushed: SequenceNumber,
}

impl Needs {
    pub(super) fn of(keyspace: &KeyspaceState) -> Self {
        Self {
            settled: keyspace.settled,
            flushed: keyspace.flushed,
        }
    }
}

/// Neighbouring value files.
#[derive(Debug)]
pub(super) struct FilesChunk {
    pub(super) files: Arc<NumberChunk<ValueFileState>>,
    pub(super) handles: Box<[Shared<ValueHandle>]>,
    pub(super) sums: ValueSums,
    /// What the sums depend on: the smallest and the largest sequence number up to which entries point to a complete value log of
    /// the chunk.
    sequences: (SequenceNumber, SequenceNumber),
    needs: Needs,
}

impl FilesChunk {
    /// Of these files, with the handles that `handle` has for each, by its place.
    pub(super) fn new(
        files: &Arc<NumberChunk<ValueFileState>>,
        needs: Needs,
        handle: impl Fn(usize, &ValueFileState) -> Shared<ValueHandle>,
    ) -> Shared<Self> {
        let last_sequence = |file: &ValueFileState| match file.kind {
            ValueFileKind::SealedLog { last_sequence } => Some(last_sequence),
            ValueFileKind::OpenLog | ValueFileKind::TransientLog | ValueFileKind::GcOutput => None,
        };
        let last_sequences = || files.values().iter().filter_map(last_sequence);
        let handles = files.values().iter().enumerate();
        Shared::new(Self {
            handles: handles.map(|(place, file)| handle(place, file)).collect(),
            sums: sums(files.values(), needs),
            sequences: (
                last_sequences().min().unwrap_or(SequenceNumber::MAX),
                last_sequences().max().unwrap_or(0),
            ),
            files: Arc::clone(files),
            needs,
        })
    }

    /// Whether it is the chunk of `files` with these needs, too.
    pub(super) fn is_of(&self, files: &Arc<NumberChunk<ValueFileState>>, needs: Needs) -> bool {
        let (smallest, largest) = self.sequences;
        // Each log is on the same side of both bounds.
        let is_same = |one: SequenceNumber, other: SequenceNumber| {
            one == other || largest <= one.min(other) || smallest > one.max(other)
        };
        Arc::ptr_eq(&self.files, files)
            && is_same(self.needs.settled, needs.settled)
            && is_same(self.needs.flushed, needs.flushed)
    }

    /// The files that garbage collection may take.
    pub(super) fn collectable(&self) -> impl Iterator<Item = &ValueFileState> {
        let settled = self.needs.settled;
        let files = self.files.values().iter();
        files.filter(move |file| file.is_collectable(settled))
    }

    /// The value logs and GC outputs.
    pub(super) fn logs(&self) -> impl Iterator<Item = LogSummary> {
        self.files.values().iter().filter_map(|file| self.log(file))
    }

    /// `file`, which is one of its files, if it is a value log or a GC output.
    pub(super) fn log(&self, file: &ValueFileState) -> Option<LogSummary> {
        file.log_summary(self.needs.settled, self.needs.flushed)
    }
}

fn sums(files: &[ValueFileState], needs: Needs) -> ValueSums {
    let of_file = |file| {
        let log = ValueFileState::log_summary(file, needs.settled, needs.flushed);
        ValueSums::of(file, log.as_ref())
    };
    let sums = files.iter().map(of_file);
    sums.fold(ValueSums::default(), ValueSums::plus)
}
