//! Decides which pieces of a mapping readers may use in place.
//!
//! A load from a mapping whose page is not in memory waits for the device, and a failing device then ends the
//! process. So a reader uses a piece in place only if the piece has a *mark*: in this interval the piece was
//! in memory, and verified or just written. A reader of a piece without a mark asks the system. If the piece is in memory,
//! the reader verifies it in place and marks it. If not, the reader loads a copy by a system call. Such a *cold
//! read* moves the bytes of the piece and no others, reports a failing device as an error, and leaves no mark.
//!
//! An interval ends after the scrub interval of the options. If memory is short it ends sooner, because the system
//! evicts pages without notice: after a second, if there was a cold read for [`MARKS_PER_COLD_READ`] marks.
//! A load of a page that was evicted within the interval is correct, but it can wait and it can fail.
//!
//! The system evicts marked pieces as well, and nobody notices if all pieces in use have marks. So every
//! [`SENTINEL_EVERY`]th piece of a file is a *sentinel*: it never has a mark, and its reads ask the system each time. A
//! cold read of a sentinel counts for all pieces that it stands for.
//!
//! What readers of a segment find in the interval in which this process completed it is what the writer has sealed with
//! checksums, unless pages have left the page cache. So these blocks need no verification in that interval, and a reader
//! who finds a *group* of them in memory marks them together. The first evidence that pages have left ends that: the
//! writing job lets them go, or a reader does not find its group, or asks the device for some of the blocks.
//!
//! Invariants:
//! - I1. A piece has a mark only if a reader found it in memory in this interval or while this interval began. If it is a
//!   block, the reader verified it then, or this process completed its segment in this interval and nothing has shown that
//!   pages of it have left the page cache.
//! - I2. A segment counts as written in no other interval than that in which it was noted.
//!
//! Concurrency: all readers share one clock and the marks of a file. The start of an interval may race with any read:
//! a reader that misses it at one access sees it at the next. A short lock guards the list of written segments: jobs,
//! opens of tables, starts of intervals, and the first evidence against a segment take it.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::base::SegmentId;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::runtime::Runtime;

/// The least length of an interval if memory is short.
const SHORT_INTERVAL: Duration = Duration::from_secs(1);

/// An interval if memory is short ends at one cold read for this number of marks. A cold read evicts about as
/// much as it loads, so about one mark in this number is then out of date.
const MARKS_PER_COLD_READ: u64 = 16;

/// How many reads ask for their blocks in advance after a cold read.
const ANNOUNCED_READS: u32 = 256;

/// One piece in this number is a sentinel.
const SENTINEL_EVERY: usize = 1024;

/// The pieces whose marks are in one word.
const WORD_PIECES: usize = 64;

/// The pieces that are marked together. About as many are mapped together by the fault of one page.
const GROUP_PIECES: usize = 16;

/// What stands in place of an interval for pieces that count as written in none.
const NOT_WRITTEN: u64 = u64::MAX;

/// The most segments whose writing is remembered, 8 bytes each and their place in a set. Segments beyond are verified.
const WRITTEN_MAX: usize = 1 << 14;

/// Counts intervals. A new interval removes every mark.
pub(crate) struct MarkClock {
    interval: AtomicU64,
    /// The marks of this interval.
    marks: AtomicU64,
    /// The cold reads of this interval.
    cold_reads: AtomicU64,
    /// The start of this interval, in nanoseconds of the runtime.
    began: AtomicU64,
    /// How many more reads ask for their blocks in advance.
    announced_reads: AtomicU32,
    /// The segments that were written in this interval.
    written: Mutex<HashSet<SegmentId>>,
    runtime: Arc<dyn Runtime>,
}

impl MarkClock {
    pub(crate) fn new(runtime: &Arc<dyn Runtime>) -> Self {
        Self {
            interval: AtomicU64::new(0),
            marks: AtomicU64::new(0),
            cold_reads: AtomicU64::new(0),
            began: AtomicU64::new(nanos(runtime.now())),
            announced_reads: AtomicU32::new(0),
            written: Mutex::default(),
            runtime: Arc::clone(runtime),
        }
    }

    /// Begins the next interval if this one is `age` old.
    pub(crate) fn advance_at(&self, age: Duration) {
        let began = self.began.load(Ordering::Relaxed);
        if nanos(self.runtime.now()).saturating_sub(began) >= nanos(age) {
            self.advance();
        }
    }

    /// Begins the next interval.
    pub(crate) fn advance(&self) {
        self.began
            .store(nanos(self.runtime.now()), Ordering::Relaxed);
        self.marks.store(0, Ordering::Relaxed);
        self.cold_reads.store(0, Ordering::Relaxed);
        let mut written = self.written.lock();
        self.interval.fetch_add(1, Ordering::Relaxed);
        *written = HashSet::new(); // I2
    }

    /// Notes that this process has just written `segment`, without compression, and that it has let go of no page of it.
    pub(crate) fn note_written(&self, segment: SegmentId) {
        let mut written = self.written.lock();
        if written.len() < WRITTEN_MAX {
            written.insert(segment);
        }
    }

    /// The interval, if `segment` was written in it.
    pub(crate) fn written_in(&self, segment: SegmentId) -> Option<u64> {
        let written = self.written.lock();
        written.contains(&segment).then(|| self.interval())
    }

    /// The current interval.
    #[inline]
    pub(crate) fn interval(&self) -> u64 {
        self.interval.load(Ordering::Relaxed)
    }

    /// Counts a cold read that stands for `reads`, and begins the next interval if memory is short.
    pub(crate) fn note_cold_read(&self, reads: u64) {
        self.announced_reads
            .store(ANNOUNCED_READS, Ordering::Relaxed);
        let cold_reads = self.cold_reads.fetch_add(reads, Ordering::Relaxed) + reads;
        let marks = self.marks.load(Ordering::Relaxed);
        if marks > 0 && cold_reads * MARKS_PER_COLD_READ >= marks {
            self.advance_at(SHORT_INTERVAL);
        }
    }

    /// Whether there was a cold read a short time ago, so that a read of several blocks should ask for all of them
    /// before it waits for one.
    #[inline]
    pub(crate) fn is_cold(&self) -> bool {
        self.announced_reads.load(Ordering::Relaxed) > 0
    }

    /// Notes that a read found all of its blocks in memory.
    pub(crate) fn note_warm_read(&self) {
        let left = self.announced_reads.load(Ordering::Relaxed);
        // A lost update changes only how soon reads stop to ask.
        self.announced_reads
            .store(left.saturating_sub(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
impl Default for MarkClock {
    fn default() -> Self {
        let runtime: Arc<dyn Runtime> = Arc::new(crate::runtime::Threads::default());
        Self::new(&runtime)
    }
}

impl fmt::Debug for MarkClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarkClock")
            .field("interval", &self.interval())
            .finish_non_exhaustive()
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The marks of one file or segment: a bit for each piece.
#[derive(Debug)]
pub(crate) struct Marks {
    interval: AtomicU64,
    /// The interval in which this process wrote the pieces, if it did.
    written_in: AtomicU64,
    words: Box<[AtomicU64]>,
}

impl Marks {
    pub(crate) fn new(pieces: usize) -> Self {
        Self {
            interval: AtomicU64::new(0),
            written_in: AtomicU64::new(NOT_WRITTEN),
            words: (0..pieces.div_ceil(WORD_PIECES))
                .map(|_| AtomicU64::new(0))
                .collect(),
        }
    }

    /// The marks of pieces that this process wrote in the interval `written_in`, if it did.
    pub(crate) fn written_in(self, interval: Option<u64>) -> Self {
        let interval = interval.unwrap_or(NOT_WRITTEN);
        Self {
            written_in: AtomicU64::new(interval),
            ..self
        }
    }

    /// Whether this process wrote the pieces in the interval of `clock`, and none is known to have left the page cache.
    pub(crate) fn are_written(&self, clock: &MarkClock) -> bool {
        self.written_in.load(Ordering::Relaxed) == clock.interval()
    }

    /// Notes that pages of these pieces of `segment` have left the page cache, so what comes back is not known to be what
    /// was written, also if the table is closed and opened again.
    pub(crate) fn forget_written(&self, segment: SegmentId, clock: &MarkClock) {
        if self.written_in.swap(NOT_WRITTEN, Ordering::Relaxed) != NOT_WRITTEN {
            clock.written.lock().remove(&segment);
        }
    }

    /// The pieces of the group of `piece`; the last group may name pieces that do not exist.
    pub(crate) fn group(piece: usize) -> Range<usize> {
        let start = piece - piece % GROUP_PIECES;
        start..start + GROUP_PIECES
    }

    /// The bytes held in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// Whether `piece` has a mark in the interval of `clock`.
    #[inline]
    pub(crate) fn contains(&self, piece: usize, clock: &MarkClock) -> bool {
        let interval = clock.interval();
        if self.interval.load(Ordering::Acquire) != interval {
            self.remove_all(interval);
        }
        let word = self.words[piece / WORD_PIECES].load(Ordering::Relaxed);
        word >> (piece % WORD_PIECES) & 1 != 0
    }

    /// Whether all `pieces` have a mark in the interval of `clock`.
    #[inline]
    pub(crate) fn contain(&self, mut pieces: Range<usize>, clock: &MarkClock) -> bool {
        pieces.all(|piece| self.contains(piece, clock))
    }

    /// Whether `piece` never gets a mark.
    pub(crate) fn is_sentinel(piece: usize) -> bool {
        piece % SENTINEL_EVERY == SENTINEL_EVERY / 2
    }

    /// The number of pieces that a cold read of `piece` stands for.
    pub(crate) fn represented(piece: usize) -> u64 {
        if Self::is_sentinel(piece) {
            SENTINEL_EVERY as u64
        } else {
            1
        }
    }

    /// Marks `piece`, unless it is a sentinel.
    pub(crate) fn insert(&self, piece: usize, clock: &MarkClock) {
        if Self::is_sentinel(piece) {
            return;
        }
        let bit = 1 << (piece % WORD_PIECES);
        if self.words[piece / WORD_PIECES].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            clock.marks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Marks the `pieces` of one group, which this process has written and a reader has found in memory, except sentinels.
    /// They count as one mark, since nobody has asked for the others yet.
    pub(crate) fn insert_written(&self, pieces: Range<usize>, clock: &MarkClock) {
        let word = &self.words[pieces.start / WORD_PIECES];
        let bits = pieces.filter(|&piece| !Self::is_sentinel(piece));
        let bits = bits.fold(0, |bits, piece| bits | 1 << (piece % WORD_PIECES));
        if word.fetch_or(bits, Ordering::Relaxed) & bits != bits {
            clock.marks.fetch_add(1, Ordering::Relaxed);
        }
        if !self.are_written(clock) {
            // The marks may have come into the interval that has begun meanwhile (I1).
            word.store(0, Ordering::Relaxed);
        }
    }

    #[cold]
    fn remove_all(&self, interval: u64) {
        for word in &self.words {
            word.store(0, Ordering::Relaxed);
        }
        // The bits are cleared before any reader can see the new interval.
        self.interval.store(interval, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{Work, Workers};
    use std::io;

    /// A clock that is stuck at one time.
    #[derive(Debug)]
    struct StuckAt(Duration);

    impl Runtime for StuckAt {
        fn now(&self) -> Duration {
            self.0
        }

        fn unix_time(&self) -> Duration {
            self.0
        }

        fn sleep(&self, _: Duration) {}

        fn random(&self) -> u64 {
            0
        }

        fn start(&self, _: Arc<dyn Work>, _: usize) -> io::Result<Box<dyn Workers>> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn step_instead_of_waiting(&self, _: &dyn Work) -> bool {
            false
        }
    }

    /// A clock whose present interval began `age` ago.
    fn clock(age: Duration) -> MarkClock {
        let runtime: Arc<dyn Runtime> = Arc::new(StuckAt(age));
        let clock = MarkClock::new(&runtime);
        clock.began.store(0, Ordering::Relaxed);
        clock
    }

    #[test]
    fn a_new_interval_removes_all_marks() {
        let clock = clock(Duration::ZERO);
        let marks = Marks::new(200);
        for piece in [0, 63, 64, 199] {
            assert!(!marks.contains(piece, &clock));
            marks.insert(piece, &clock);
            assert!(marks.contains(piece, &clock));
        }
        assert!(marks.contain(63..65, &clock) && !marks.contain(63..66, &clock));
        clock.advance();
        assert!((0..200).all(|piece| !marks.contains(piece, &clock)));
    }

    #[test]
    fn segments_count_as_written_in_one_interval() {
        let clock = clock(Duration::ZERO);
        let (one, other) = (SegmentId(1), SegmentId(2));
        clock.advance();
        clock.note_written(one);
        assert_eq!(
            (clock.written_in(one), clock.written_in(other)),
            (Some(1), None)
        );
        let marks = Marks::new(200).written_in(clock.written_in(one));
        assert!(marks.are_written(&clock));
        assert!(
            !Marks::new(200)
                .written_in(clock.written_in(other))
                .are_written(&clock)
        );
        clock.advance(); // I2
        assert!(!marks.are_written(&clock));
        assert_eq!(clock.written_in(one), None);
        clock.note_written(other);
        let marks = Marks::new(200).written_in(clock.written_in(other));
        assert!(marks.are_written(&clock));
        marks.forget_written(other, &clock);
        assert!(!marks.are_written(&clock));
        assert_eq!(clock.written_in(other), None);
    }

    #[test]
    fn a_group_gets_its_marks_in_its_interval_only() {
        let clock = clock(Duration::ZERO);
        let written = |interval| Marks::new(1024).written_in(Some(interval));
        let marks = written(0);
        marks.insert_written(Marks::group(517), &clock);
        let marked = (0..1024).filter(|&piece| marks.contains(piece, &clock));
        // Without the sentinel.
        assert!(marked.eq(513..528));
        assert_eq!(clock.marks.load(Ordering::Relaxed), 1);
        let late = written(7);
        late.insert_written(Marks::group(0), &clock);
        assert!(!late.contains(0, &clock));
    }

    #[test]
    fn the_list_of_written_segments_is_bounded() {
        let clock = clock(Duration::ZERO);
        for id in 0..2 * WRITTEN_MAX as u64 {
            clock.note_written(SegmentId(id));
        }
        assert_eq!(clock.written.lock().len(), WRITTEN_MAX);
    }

    #[test]
    fn memory_shortage_ends_an_interval_after_a_second() {
        let rows = [
            // marks, cold reads, age in milliseconds, whether the interval ends
            (160, 10, 1000, true),
            (160, 9, 1000, false),
            (160, 10, 0, false),
            (0, 10, 1000, false),
        ];
        for (marked, cold_reads, age, ends) in rows {
            let clock = clock(Duration::from_millis(age));
            let marks = Marks::new(200);
            for piece in 0..marked {
                marks.insert(piece, &clock);
                marks.insert(piece, &clock);
            }
            for _ in 0..cold_reads {
                clock.note_cold_read(1);
            }
            assert_eq!(clock.interval() == 1, ends, "{marked} {cold_reads} {age}");
        }
    }

    #[test]
    fn sentinels_notice_that_marked_pieces_are_evicted() {
        let clock = clock(Duration::from_secs(1));
        let marks = Marks::new(4096);
        for piece in 0..4096 {
            marks.insert(piece, &clock);
        }
        let unmarked = (0..4096).filter(|&piece| !marks.contains(piece, &clock));
        let unmarked: Vec<usize> = unmarked.collect();
        assert_eq!(unmarked, [512, 1536, 2560, 3584]);
        clock.note_cold_read(Marks::represented(513));
        assert_eq!(clock.interval(), 0);
        clock.note_cold_read(Marks::represented(512));
        assert_eq!(clock.interval(), 1);
    }

    #[test]
    fn reads_ask_in_advance_for_a_while_after_a_cold_read() {
        let clock = MarkClock::default();
        assert!(!clock.is_cold());
        clock.note_cold_read(1);
        for _ in 0..ANNOUNCED_READS {
            assert!(clock.is_cold());
            clock.note_warm_read();
        }
        clock.note_warm_read();
        assert!(!clock.is_cold());
    }
}
