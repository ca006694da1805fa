//! Cursors over levels whose files have several segments. They open only the segments that they need.

use std::cmp::Reverse;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Entry, KeyRange, ListCursor, MergingCursor, VisibleCursor, bound};
use crate::base::key::{SEQUENCE_MAX, compare_entries};
use crate::base::sync::Shared;
use crate::base::sync::atomic::Ordering;
use crate::base::{Cursor, ErrorKind, FileNumber, Kind, SegmentId, Trailer};
use crate::cache::BlockCache;
use crate::codec::Compression;
use crate::manifest::{FileHandle, Version};
use crate::options::BlockSource;
use crate::read::run::{OpenCursor, Run, RunCursor};
use crate::table::{
    OpenTables, ReadCounters, SequentialCursor, TableContext, TableCursor, TableFiles,
    TableOptions, TableWriter, file_name,
};
use crate::vfs::memory::MemoryVfs;

/// The segments of files, oldest first.
pub(super) type Files = Vec<Vec<Vec<Entry>>>;

pub(super) struct Fixture {
    vfs: Arc<MemoryVfs>,
    pub(super) tables: Arc<OpenTables>,
    pub(super) version: Version,
    /// Files opened to write them.
    opened_before: usize,
}

impl Fixture {
    /// A tree of these levels, from level 1 on.
    pub(super) fn new(levels: &[Files]) -> Self {
        let vfs = Arc::new(MemoryVfs::default());
        let mut number = 0;
        let mut write = |segments: &Vec<Vec<Entry>>| {
            number += 100;
            write(&vfs, number, segments)
        };
        let levels = levels
            .iter()
            .map(|files| files.iter().map(&mut write).collect());
        let levels = std::iter::once(Vec::new()).chain(levels);
        let version = Version::new(levels.collect()).unwrap();
        let files = Arc::clone(&vfs) as Arc<dyn crate::vfs::Vfs>;
        let files = TableFiles::new(files, "".into(), BlockSource::Buffered, 100);
        let context = TableContext {
            files: Arc::new(files),
            cache: Arc::new(BlockCache::new(1 << 20)),
            clock: Arc::default(),
            memory: Arc::default(),
            piece_reads: Arc::default(),
            scans: Arc::default(),
        };
        Self {
            tables: Arc::new(OpenTables::new(context)),
            opened_before: vfs.opened.load(Ordering::Relaxed),
            vfs,
            version,
        }
    }

    /// Cursors over the segment runs of all levels, newest first, as for reads.
    pub(super) fn runs(&self) -> Vec<RunCursor<TableCursor>> {
        let levels = self.version.levels()[1..].iter();
        let runs = levels.flat_map(|level| {
            (0..level.runs())
                .rev()
                .map(|run| Run::OfLevel(Shared::clone(level), run))
        });
        runs.map(|run| RunCursor::new(Arc::clone(&self.tables), run))
            .collect()
    }

    /// Cursors over the files of all levels, newest first, as for compactions.
    fn files<C: OpenCursor>(&self) -> Vec<RunCursor<C>> {
        let levels = self.version.levels()[1..].iter();
        let files = levels.map(|level| level.files().cloned().collect::<Vec<_>>());
        let runs = files.flat_map(|files| Run::of_files(&files).rev().collect::<Vec<_>>());
        runs.map(|run| RunCursor::new(Arc::clone(&self.tables), run))
            .collect()
    }

    pub(super) fn opened(&self) -> usize {
        self.vfs.opened.load(Ordering::Relaxed) - self.opened_before
    }
}

fn write(vfs: &MemoryVfs, number: u64, segments: &[Vec<Entry>]) -> Shared<FileHandle> {
    let options = TableOptions {
        block_bytes: 256,
        filter_units: [0.0; 4],
        compression: Compression::None,
    };
    let mut meta = None;
    for (id, entries) in (number..).zip(segments) {
        let (folder, id) = (Path::new(""), SegmentId(id));
        let writer = match &meta {
            None => TableWriter::create(vfs, folder, FileNumber(number), id, &options),
            Some(before) => TableWriter::append(vfs, folder, before, id, &options),
        };
        let mut writer = writer.unwrap();
        for (key, trailer, value) in entries {
            writer.add(key, *trailer, value).unwrap();
        }
        meta = Some(writer.finish().unwrap().file);
    }
    FileHandle::new(meta.unwrap(), &Arc::default())
}

/// The number of keys, the keys per file, and the most segments of a file.
const KEYS: u8 = 40;
const FILE_KEYS: u8 = 10;
const AGES: usize = 4;

/// Writes in commit order: (key, is a deletion).
fn writes() -> impl Strategy<Value = Vec<(u8, bool)>> {
    proptest::collection::vec((0..KEYS, prop::bool::weighted(0.3)), 0..150)
}

fn trailer(index: usize, is_deletion: bool) -> Trailer {
    let kind = if is_deletion {
        Kind::Tombstone
    } else {
        Kind::Value
    };
    Trailer::new(index as u64 + 1, kind)
}

/// Two levels that hold `writes`, the older half in the deeper one.
fn levels(writes: &[(u8, bool)]) -> [Files; 2] {
    let half = writes.len() / 2;
    [half..writes.len(), 0..half].map(|range| {
        let mut files = Vec::new();
        for file in 0..KEYS / FILE_KEYS {
            let mut segments = vec![Vec::new(); AGES];
            for index in range.clone() {
                let (key, is_deletion) = writes[index];
                if key / FILE_KEYS == file {
                    let age = (index - range.start) * AGES / range.len();
                    let value = vec![key; if is_deletion { 0 } else { 30 }];
                    segments[age].push((vec![key], trailer(index, is_deletion), value));
                }
            }
            segments.retain(|segment| !segment.is_empty());
            for segment in &mut segments {
                sort(segment);
            }
            if !segments.is_empty() {
                files.push(segments);
            }
        }
        files
    })
}

/// The same in runs of one segment, through whose blocks readers stride: what is older than the last `newer` writes in one, and those
/// each in its own.
fn long_runs(writes: &[(u8, bool)], newer: usize) -> Vec<Files> {
    let mut entries: Vec<Entry> = levels(writes)
        .into_iter()
        .flatten()
        .flatten()
        .flatten()
        .collect();
    entries.sort_by_key(|entry| Reverse(entry.1.sequence()));
    let mut older = entries.split_off(newer.min(entries.len()));
    sort(&mut older);
    let newer = entries.into_iter().map(|entry| vec![entry]);
    let runs = newer.chain([older]).filter(|run| !run.is_empty());
    runs.map(|run| vec![vec![run]]).collect()
}

fn sort(entries: &mut [Entry]) {
    entries.sort_by(|left, right| {
        compare_entries(&left.0, left.1.sequence(), &right.0, right.1.sequence())
    });
}

#[derive(Debug, Clone, Copy)]
enum Move {
    First,
    Last,
    Seek(u8, u64),
    Next,
    Prev,
    /// Read the entry that is ahead.
    Arrive,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let step = prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        4 => (0..=KEYS, prop_oneof![0..200_u64, Just(SEQUENCE_MAX)])
            .prop_map(|(key, sequence)| Move::Seek(key, sequence)),
        6 => Just(Move::Next),
        4 => Just(Move::Prev),
        2 => Just(Move::Arrive),
    ];
    proptest::collection::vec(step, 1..80)
}

fn go(cursor: &mut dyn Cursor, step: Move) -> Option<crate::base::Step> {
    match step {
        Move::First => cursor.seek_to_first().unwrap(),
        Move::Last => cursor.seek_to_last().unwrap(),
        Move::Seek(key, sequence) => cursor.seek(&[key], sequence).unwrap(),
        Move::Next => return Some(cursor.next().unwrap()),
        Move::Prev => cursor.prev().unwrap(),
        Move::Arrive => cursor.arrive().unwrap(),
    }
    None
}

/// Moves `cursor` together with a list of the same entries. A cursor that is ahead has the right key, and
/// its trailer is at the side from which the cursor came.
fn walk(cursor: &mut dyn Cursor, entries: Vec<Entry>, moves: &[Move]) {
    let mut list = ListCursor::new(entries);
    for step in moves {
        let steps = [&mut *cursor, &mut list].map(|cursor| go(cursor, *step));
        assert_eq!(steps[0], steps[1], "{step:?}");
        assert_eq!(cursor.is_valid(), list.is_valid(), "{step:?}");
        if !list.is_valid() {
            assert!(!cursor.is_ahead());
            continue;
        }
        assert_eq!(cursor.key(), list.key(), "{step:?}");
        if cursor.is_ahead() {
            let sequence = cursor.trailer().sequence();
            let is_forward = matches!(step, Move::First | Move::Seek(..));
            assert_eq!(
                sequence,
                if is_forward { SEQUENCE_MAX } else { 0 },
                "{step:?}"
            );
            assert!(!matches!(step, Move::Next | Move::Arrive));
        } else {
            assert_eq!(cursor.trailer(), list.trailer(), "{step:?}");
            assert_eq!(cursor.value(), list.value(), "{step:?}");
        }
    }
}

#[test]
fn a_stride_ends_before_the_next_key_of_another_run() {
    let mut writes: Vec<(u8, bool)> = (0..KEYS).map(|key| (key, false)).collect();
    writes.push((KEYS / 2, false));
    let fixture = Fixture::new(&long_runs(&writes, 1));
    let range = KeyRange {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
    };
    let mut cursor = VisibleCursor::new(MergingCursor::new(fixture.runs()), SEQUENCE_MAX, range);
    let mut found = cursor.seek_to_first().unwrap();
    for key in 0..KEYS {
        assert!(found);
        assert_eq!(cursor.key(), [key]);
        found = cursor.next().unwrap();
    }
    assert!(!found);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_segment_run_is_one_list(writes in writes(), moves in moves()) {
        let levels = levels(&writes);
        let fixture = Fixture::new(&levels);
        let layer = |files: &Files, layer: usize| -> Vec<Entry> {
            files.iter().filter_map(|segments| segments.get(layer)).flatten().cloned().collect()
        };
        let mut lists = Vec::new();
        for files in &levels {
            let most = files.iter().map(Vec::len).max().unwrap_or(0);
            lists.extend((0..most).rev().map(|number| layer(files, number)));
        }
        let cursors = fixture.runs();
        prop_assert_eq!(cursors.len(), lists.len());
        for (mut cursor, list) in cursors.into_iter().zip(&lists) {
            walk(&mut cursor, list.clone(), &moves);
            walk(&mut cursor.sibling(), list.clone(), &moves);
        }
        for (mut cursor, list) in fixture.files::<SequentialCursor>().into_iter().zip(&lists) {
            walk(&mut cursor, list.clone(), &moves);
        }
    }

    #[test]
    fn merged_segment_runs_are_one_list(writes in writes(), moves in moves()) {
        let levels = levels(&writes);
        let fixture = Fixture::new(&levels);
        let all: Vec<Entry> = levels.iter().flatten().flatten().flatten().cloned().collect();
        walk(&mut MergingCursor::new(fixture.runs()), all.clone(), &moves);
        walk(&mut MergingCursor::new(fixture.files::<SequentialCursor>()), all, &moves);
    }

    #[test]
    fn a_reader_of_segment_runs_sees_the_state_at_its_sequence(
        writes in writes(),
        sequence in 0..150_usize,
        lower in (0..3u8, 0..KEYS),
        upper in (0..3u8, 0..KEYS),
        moves in moves(),
        newer in proptest::option::of(0..4usize),
    ) {
        let fixture = match newer {
            Some(newer) => Fixture::new(&long_runs(&writes, newer)),
            None => Fixture::new(&levels(&writes)),
        };
        let own = |(choice, key): (u8, u8)| bound((choice, 0)).map(|_| Box::from([key]));
        let range = KeyRange { lower: own(lower), upper: own(upper) };
        let mut state = std::collections::BTreeMap::new();
        for (index, (key, is_deletion)) in writes.iter().enumerate().take(sequence) {
            match is_deletion {
                true => state.remove(key),
                false => state.insert(*key, index),
            };
        }
        state.retain(|key, _| range.is_above_lower(&[*key]) && range.is_below_upper(&[*key]));
        let keys: Vec<u8> = state.keys().copied().collect();
        let merged = MergingCursor::new(fixture.runs());
        let mut cursor = VisibleCursor::new(merged, sequence as u64, range);
        let mut position: Option<usize> = None;
        for step in moves {
            let (found, at) = match step {
                Move::First => (cursor.seek_to_first(), Some(0)),
                Move::Last => (cursor.seek_to_last(), keys.len().checked_sub(1)),
                Move::Seek(key, _) => {
                    (cursor.seek(&[key]), Some(keys.partition_point(|other| *other < key)))
                }
                Move::Next => (cursor.next(), position.map(|position| position + 1)),
                Move::Prev => (cursor.prev(), position.and_then(|it| it.checked_sub(1))),
                Move::Arrive => continue,
            };
            position = at.filter(|at| *at < keys.len());
            prop_assert_eq!(found.unwrap(), position.is_some());
            if let Some(position) = position {
                prop_assert_eq!(cursor.key(), [keys[position]]);
                prop_assert_eq!(cursor.stored().0, [keys[position]; 30]);
            }
        }
    }

    /// The cursor reports the error at the latest when it arrives, and again after that.
    #[test]
    fn an_error_at_the_arrival_stays_an_error(
        writes in writes(), failing in 0..100_usize, backward: bool,
    ) {
        let fixture = Fixture::new(&levels(&writes));
        let files: Vec<_> = fixture.version.levels().iter().flat_map(|it| it.files()).collect();
        prop_assume!(!files.is_empty());
        let file = files[failing % files.len()];
        let path = file_name(file.meta.number);
        *fixture.vfs.file(Path::new(&path)).fails_from.lock() = Some(0);
        let mut merged = MergingCursor::new(fixture.runs());
        let mut outcome = if backward { merged.seek_to_last() } else { merged.seek_to_first() };
        while outcome.is_ok() && merged.is_valid() {
            outcome = if backward { merged.prev() } else { merged.next().map(drop) };
        }
        prop_assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Io);
        prop_assert!(!merged.is_valid());
        prop_assert!(merged.next().is_err());
        prop_assert!(merged.prev().is_err());
        prop_assert!(merged.seek(&[0], 0).is_err());
        let mut failed = 0;
        for child in merged.children_mut() {
            let refused = child.seek_to_first().is_err() && child.seek_to_last().is_err();
            failed += usize::from(refused && !child.is_valid());
        }
        prop_assert_eq!(failed, 1);
    }
}

/// A segment of these keys, written at `sequence`, with two entries per block.
fn segment(keys: &[u8], sequence: u64) -> Vec<Entry> {
    let trailer = Trailer::new(sequence, Kind::Value);
    keys.iter()
        .map(|key| (vec![*key], trailer, vec![*key; 45]))
        .collect()
}

#[test]
fn a_seek_reads_only_segments_with_keys_on_both_sides() {
    let whole: Vec<u8> = (0..100).collect();
    let fixture = Fixture::new(&[
        vec![
            // Three runs. The second begins after 10, and the third ends before it.
            vec![
                segment(&whole[..50], 5),
                segment(&[20, 21], 6),
                segment(&[2, 3], 7),
            ],
            vec![segment(&whole[60..], 5), segment(&whole[60..], 6)],
        ],
        vec![vec![segment(&[11, 12], 4)]],
        vec![vec![segment(&[8, 9], 3)], vec![segment(&[90], 3)]],
        vec![vec![segment(&[9, 11], 2)]],
    ]);
    let mut merged = MergingCursor::new(fixture.runs());
    let mut read = |work: &dyn Fn(&mut MergingCursor<RunCursor<TableCursor>>)| {
        work(&mut merged);
        let mut counters = ReadCounters::default();
        for child in merged.children_mut() {
            counters.add(&child.take_counters());
        }
        (
            counters.block_reads,
            counters.runs_visited,
            fixture.opened(),
        )
    };
    // The first segment of the first file and the last level hold keys on both sides.
    let sought = read(&|merged| merged.seek(&[10], 9).unwrap());
    assert_eq!(sought, (2, 2, 2));
    // A step into a segment opens it.
    let stepped = read(&|merged| {
        merged.next().unwrap();
        assert_eq!((merged.key(), merged.trailer().sequence()), (&[11][..], 5));
        merged.next().unwrap();
        assert_eq!((merged.key(), merged.trailer().sequence()), (&[11][..], 4));
    });
    assert_eq!((stepped.1, stepped.2), (1, 3));
    let turned = read(&|merged| {
        for _ in 0..3 {
            merged.prev().unwrap();
        }
        assert_eq!((merged.key(), merged.trailer().sequence()), (&[9][..], 2));
    });
    assert_eq!(turned.2, 4, "the file that ends with 9");
    // A seek behind everything reads nothing.
    assert_eq!(read(&|merged| merged.seek(&[100], 9).unwrap()), (0, 0, 4));
    // Only visits that a consolidation would save are counted for the files.
    let visits = || -> Vec<u64> {
        let files = fixture.version.levels()[1..]
            .iter()
            .flat_map(|it| it.files());
        files.map(|file| file.visits()).collect()
    };
    assert_eq!(visits(), [0; 6]);
    let both = read(&|merged| merged.seek(&[70], 9).unwrap());
    assert_eq!(both.1, 2);
    assert_eq!(visits(), [0, 1, 0, 0, 0, 0]);
    merged.seek_to_first().unwrap();
    assert_eq!(visits(), [0, 1, 0, 0, 0, 0]);
}
