//! Files of several segments: appends, reads, and the bytes of failed appends.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::model::options;
use super::*;
use crate::ErrorKind;
use crate::base::key::{SEQUENCE_MAX, compare_entries};
use crate::base::limits::SEGMENTS_MAX;
use crate::base::sync::atomic::Ordering;
use crate::block::stored::Place;
use crate::table::{FOOTER_BYTES, Footer, OpenTables, TableSlot};

/// Sequence numbers of one segment.
const SPAN: u64 = 100;

/// The entries of segments, oldest first: later segments hold newer entries of each key.
fn pieces(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Vec<Owned>>> {
    let value = proptest::option::of(0..300usize);
    let piece = proptest::collection::vec((0..40u8, 1..SPAN, value), 1..60);
    proptest::collection::vec(piece, count).prop_map(|pieces| {
        let piece = |(age, raw): (usize, Vec<(u8, u64, Option<usize>)>)| {
            let mut entries: Vec<Owned> = raw
                .into_iter()
                .map(|(key, sequence, length)| {
                    let value = length.map(|length| vec![key; length]);
                    let sequence = age as u64 * SPAN + sequence;
                    Owned::new(&[key / 8, key % 8], sequence, value.as_deref())
                })
                .collect();
            sort(&mut entries);
            entries
        };
        pieces.into_iter().enumerate().map(piece).collect()
    })
}

fn sort(entries: &mut Vec<Owned>) {
    let place = |entry: &Owned| (entry.key.clone(), entry.trailer.sequence());
    entries.sort_by(|left, right| {
        let (left, right) = (place(left), place(right));
        compare_entries(&left.0, left.1, &right.0, right.1)
    });
    entries.dedup_by_key(|entry| place(entry));
}

fn bytes_of(vfs: &MemoryVfs) -> Vec<u8> {
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    let bytes = file.bytes.lock();
    bytes.clone()
}

/// Writes `pieces` to one file, with a failed append of `failed` after each; no known byte changes.
fn write_all(
    vfs: &MemoryVfs,
    pieces: &[Vec<Owned>],
    failed: &[Owned],
    options: &TableOptions,
) -> FileMeta {
    let mut meta = write_to(vfs, NUMBER, &pieces[0], options);
    for (age, piece) in (1..).zip(&pieces[1..]) {
        let known = bytes_of(vfs)[..usize::try_from(meta.end()).unwrap()].to_vec();
        append(vfs, &meta, 100 + age, failed, options);
        meta = append(vfs, &meta, 200 + age, piece, options);
        assert!(
            bytes_of(vfs).starts_with(&known),
            "a known byte has changed"
        );
    }
    meta
}

/// The estimate of an append is right, except for false positives.
#[test]
fn overwritten_keys_are_counted() {
    const KEYS: u64 = 20_000;
    let entries = |numbers: std::ops::Range<u64>, sequence: u64| -> Vec<Owned> {
        let entry = |number: u64| Owned::new(&number.to_be_bytes(), sequence, Some(b"value"));
        numbers.map(entry).collect()
    };
    for (bits, others, is_reported) in [(10.0, 0.0, true), (2.0, 2.0, true), (0.0, 0.0, false)] {
        let options = TableOptions {
            filter_units: [bits, others, 0.0, 0.0],
            ..small()
        };
        let vfs = MemoryVfs::default();
        let first = write_to(&vfs, NUMBER, &entries(0..KEYS, 1), &options);
        assert_eq!(first.segments[0].overwrites, 0);
        let second = append(&vfs, &first, 20, &entries(15_000..35_000, 2), &options);
        // The file was not open.
        assert_eq!(second.segments[1].overwrites, KEYS);
        let table = open(bytes_of(&vfs), &second, BlockSource::Buffered).unwrap();
        for from in [0, 25_000, 30_000, 34_000, 35_000, 90_000] {
            let writer =
                TableWriter::append(&vfs, Path::new(""), &second, SegmentId(21), &options).unwrap();
            let writer = writer.with_older(Arc::clone(&table));
            let third = finish(writer, &entries(from..from + KEYS, 3));
            let expected = if is_reported {
                u64::saturating_sub(35_000, from).min(KEYS)
            } else {
                KEYS
            };
            let reported = third.segments[2].overwrites;
            assert!(
                reported.abs_diff(expected) <= KEYS / 20,
                "{reported} of {expected}, {bits} bits"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn segments_agree_with_a_map(
        pieces in pieces(1..=SEGMENTS_MAX), failed in pieces(1..=1), options in options(),
    ) {
        let vfs = MemoryVfs::default();
        let meta = write_all(&vfs, &pieces, &failed[0], &options);
        let bytes = bytes_of(&vfs);
        prop_assert_eq!(meta.segments.len(), pieces.len());

        // The places of segments, and the chain of footers.
        let (mut free, mut previous) = (0, None);
        for segment in &meta.segments {
            prop_assert_eq!(segment.offset, u64::next_multiple_of(free, 4096));
            free = segment.end();
            let offset = free - FOOTER_BYTES as u64;
            let place = Place { file: NUMBER, segment: segment.id, offset };
            let at = usize::try_from(offset).unwrap();
            let (footer, _) = Footer::read(&bytes[at..at + FOOTER_BYTES], place).unwrap();
            prop_assert_eq!(footer.previous, previous);
            previous = Some(offset);
        }

        let versions: BTreeMap<(Vec<u8>, u64), &Owned> = pieces
            .iter()
            .flatten()
            .map(|entry| ((entry.key.clone(), entry.trailer.sequence()), entry))
            .collect();
        for source in SOURCES {
            let table = open(bytes.clone(), &meta, source).unwrap();
            for (segment, piece) in pieces.iter().enumerate() {
                prop_assert_eq!(&scan(&mut table.cursor(segment)).unwrap(), piece);
                prop_assert_eq!(&scan(&mut table.sequential_cursor(segment)).unwrap(), piece);
            }
            let ages = pieces.len() as u64;
            let sequences = (0..=ages).flat_map(|age| [age * SPAN, age * SPAN + SPAN / 2]);
            for sequence in sequences.chain([SEQUENCE_MAX]) {
                for key in 0..40u8 {
                    let key = vec![key / 8, key % 8];
                    let range = (key.clone(), 0)..=(key.clone(), sequence);
                    let expected = versions.range(range).next_back();
                    let expected = expected.map(|(_, it)| (it.trailer, it.value.clone()));
                    prop_assert_eq!(get(&table, &key, sequence).unwrap(), expected);
                }
            }
            let mut damage = Vec::new();
            let report = table.verify(&mut damage, &mut |_, _| Ok(())).unwrap();
            prop_assert!(damage.is_empty(), "{:?}", damage);
            prop_assert_eq!(report.segments, ages);
            prop_assert_eq!(report.entries, versions.len() as u64);
        }
    }

    /// To within a block at either end of each segment.
    #[test]
    fn bytes_between_keys_are_about_those_of_their_entries(
        pieces in pieces(1..=4), from in 0..40u8, width in 0..40u8,
    ) {
        let options = TableOptions { block_bytes: 400, ..plain() };
        let vfs = MemoryVfs::default();
        let meta = write_all(&vfs, &pieces, &pieces[0], &options);
        let table = open(bytes_of(&vfs), &meta, BlockSource::Buffered).unwrap();
        let to = from + width;
        let [from, to] = [from, to].map(|key| [key / 8, key % 8]);
        let whole = table.bytes_between(None, None);
        let [before, between, after] = [
            table.bytes_between(None, Some(&from)),
            table.bytes_between(Some(&from), Some(&to)),
            table.bytes_between(Some(&to), None),
        ];
        prop_assert_eq!(before + between + after, whole);
        let lies_between = |entry: &&Owned| from[..] <= entry.key[..] && entry.key[..] < to[..];
        let entries = pieces.iter().flatten().filter(lies_between);
        // Each has a key, a trailer and a slot beside its value.
        let least: u64 = entries.clone().map(|entry| entry.value.len() as u64).sum();
        let most = entries.map(|entry| entry.value.len() as u64 + 40).sum::<u64>();
        let slack = 800 * pieces.len() as u64;
        prop_assert!(between + slack >= least && between <= most + slack, "{} bytes", between);
    }
}

/// A get searches later segments first, so an older entry there would hide a newer one.
#[test]
fn segments_out_of_order_are_damage() {
    // Sequence numbers of the keys a, b and c in successive segments.
    let cases: [(&[[&[u64]; 3]], bool); 6] = [
        (&[[&[3], &[5], &[9]], [&[4], &[6], &[10]]], true),
        (&[[&[3], &[5], &[9]], [&[4], &[], &[8]]], false),
        (&[[&[3], &[5], &[9]], [&[4], &[5], &[]]], false),
        (&[[&[3, 2], &[], &[9]], [&[8, 4], &[1], &[]]], true),
        (&[[&[6, 2], &[], &[9]], [&[8, 4], &[1], &[]]], false),
        (
            &[[&[6], &[1], &[9]], [&[], &[2], &[]], [&[5], &[3], &[]]],
            false,
        ),
    ];
    for (segments, is_sound) in cases {
        let entries = |segment: &[&[u64]; 3]| -> Vec<Owned> {
            let keys = [b"a", b"b", b"c"].into_iter().zip(segment);
            let versions = |(key, versions): (&[u8; 1], &&[u64])| -> Vec<Owned> {
                let entry = |&sequence: &u64| Owned::new(key, sequence, Some(b"value"));
                versions.iter().map(entry).collect()
            };
            keys.flat_map(versions).collect()
        };
        let vfs = MemoryVfs::default();
        let mut meta = write_to(&vfs, NUMBER, &entries(&segments[0]), &small());
        for (id, segment) in (20..).zip(&segments[1..]) {
            meta = append(&vfs, &meta, id, &entries(segment), &small());
        }
        for source in SOURCES {
            let table = open(bytes_of(&vfs), &meta, source).unwrap();
            let mut damage = Vec::new();
            table.verify(&mut damage, &mut |_, _| Ok(())).unwrap();
            let reported: Vec<String> = damage.iter().map(ToString::to_string).collect();
            assert_eq!(reported.is_empty(), is_sound, "{segments:?}: {reported:?}");
            assert!(
                reported
                    .iter()
                    .all(|it| it.contains("not newer than one of its key"))
            );
        }
    }
}

/// Entries of equal size. The value is the number of the attempt.
fn alike(value: u8) -> Vec<Owned> {
    many_alike(64, value)
}

fn many_alike(count: u32, value: u8) -> Vec<Owned> {
    let entry = |key: u32| Owned::new(format!("{key:04}").as_bytes(), 9, Some(&[value; 20]));
    (0..count).map(entry).collect()
}

fn small() -> TableOptions {
    TableOptions {
        block_bytes: 300,
        ..plain()
    }
}

/// The bytes of one attempt are in the place of those of the next, like after a lost write.
#[test]
fn bytes_of_a_failed_append_never_pass_for_the_next() {
    let vfs = MemoryVfs::default();
    let first = write_to(&vfs, NUMBER, &[Owned::new(b"a", 1, Some(b"1"))], &small());
    append(&vfs, &first, 20, &alike(1), &small());
    let left = bytes_of(&vfs);
    let meta = append(&vfs, &first, 21, &alike(2), &small());
    let bytes = bytes_of(&vfs);
    assert_eq!(left.len(), bytes.len());
    let table = open(bytes.clone(), &meta, BlockSource::Buffered).unwrap();
    let segment = &table.segments[1];
    let place = |offset: u64| usize::try_from(offset).unwrap();
    let blocks = (0..segment.index.blocks()).map(|block| {
        let block = table.block_place(segment, block).unwrap();
        place(block.offset)..place(block.end())
    });
    let whole = place(meta.segments[1].offset)..place(meta.end());
    for range in blocks.chain([whole]) {
        let mut stale = bytes.clone();
        stale[range.clone()].copy_from_slice(&left[range.clone()]);
        for source in SOURCES {
            let read = || {
                let table = open(stale.clone(), &meta, source)?;
                let scanned = scan(&mut table.cursor(1))?;
                assert!(scanned == alike(2), "{range:?} was taken for another");
                Ok(())
            };
            let error: crate::Error = read().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
        }
    }
}

#[test]
fn errors_name_the_damaged_segment() {
    let vfs = MemoryVfs::default();
    let first = write_to(&vfs, NUMBER, &alike(1), &small());
    let newer: Vec<Owned> = alike(2)
        .into_iter()
        .map(|entry| Owned::new(&entry.key, 19, Some(&entry.value)))
        .collect();
    let meta = append(&vfs, &first, 21, &newer, &small());
    let mut bytes = bytes_of(&vfs);
    let segment = meta.segments[1].offset..meta.end();
    let between = first.end()..segment.start;
    for at in between.chain(segment.clone()) {
        bytes[usize::try_from(at).unwrap()] ^= 1;
        for source in SOURCES {
            let read = || {
                let table = open(bytes.clone(), &meta, source)?;
                assert!(scan(&mut table.cursor(0)).unwrap() == alike(1));
                scan(&mut table.cursor(1)).map(|scanned| assert!(scanned == newer))
            };
            let outcome = read();
            if !segment.contains(&at) {
                outcome.unwrap();
                continue;
            }
            let message = outcome.unwrap_err().to_string();
            assert!(message.contains(&file_name(NUMBER)), "{message}");
            let offset = message.split("offset ").nth(1).unwrap();
            let digits: String = offset.chars().take_while(char::is_ascii_digit).collect();
            let offset: u64 = digits.parse().unwrap();
            assert!(segment.contains(&offset), "damage at {at}: {message}");
        }
        bytes[usize::try_from(at).unwrap()] ^= 1;
    }
}

#[test]
fn an_append_without_space_leaves_the_file_unchanged() {
    let vfs = MemoryVfs::default();
    let first = write_to(&vfs, NUMBER, &alike(1), &small());
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    *file.full_at.lock() = Some(5000);
    let folder = Path::new("");
    let mut writer = TableWriter::append(&vfs, folder, &first, SegmentId(20), &small()).unwrap();
    for entry in alike(2) {
        writer.add(&entry.key, entry.trailer, &entry.value).unwrap();
    }
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::NoSpace);
    let table = open(bytes_of(&vfs), &first, BlockSource::Mapped).unwrap();
    assert!(scan(&mut table.cursor(0)).unwrap() == alike(1));
    *file.full_at.lock() = None;
    let syncs = file.syncs.load(Ordering::Relaxed);
    let meta = append(&vfs, &first, 21, &alike(3), &small());
    assert_eq!(file.syncs.load(Ordering::Relaxed), syncs + 1);
    let table = open(bytes_of(&vfs), &meta, BlockSource::Mapped).unwrap();
    assert!(scan(&mut table.cursor(0)).unwrap() == alike(1));
    assert!(scan(&mut table.cursor(1)).unwrap() == alike(3));
}

#[test]
fn a_grown_table_is_opened_without_reading_old_segments_again() {
    // The filters are too long to be read with the footer.
    let alike = |value| many_alike(9000, value);
    let vfs = Arc::new(MemoryVfs::default());
    let first = write_to(&vfs, NUMBER, &alike(1), &small());
    let grown = append(&vfs, &first, 21, &alike(2), &small());
    let tables = OpenTables::new(TableContext {
        files: files(Arc::clone(&vfs), BlockSource::Buffered, 16),
        ..context(BlockSource::Buffered)
    });
    let [slot, next, unread] = [(); 3].map(|()| Arc::new(TableSlot::default()));
    // A table that is not open is not opened.
    tables.open_grown(&slot, &next, &grown).unwrap();
    assert!(next.peek().is_none());
    let known = Arc::clone(&tables.get(&slot, &first).unwrap());
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    let count = || file.read_bytes.load(Ordering::Relaxed);
    let read = |work: &dyn Fn()| {
        let before = count();
        work();
        count() - before
    };
    let followed = read(&|| tables.open_grown(&slot, &next, &grown).unwrap());
    let opened = vfs.opened.load(Ordering::Relaxed);
    let table = Arc::clone(&tables.get(&next, &grown).unwrap());
    assert_eq!(vfs.opened.load(Ordering::Relaxed), opened, "it is open");
    assert!(Arc::ptr_eq(&known.segments[0], &table.segments[0]));
    let whole = read(&|| drop(tables.get(&unread, &grown).unwrap()));
    let old = read(&|| drop(tables.open_anew(&first).unwrap()));
    assert_eq!(followed + old, whole);
    assert_eq!(get(&table, b"0007", 9).unwrap().unwrap().1, [2; 20]);
    assert_eq!(get(&known, b"0007", 9).unwrap().unwrap().1, [1; 20]);

    // Fewer units are copied, and segments without a change are shared.
    let mut units = next.filter_units();
    assert_eq!((units.of(0), units.of(1)), (4, 4));
    units = crate::filter::LoadedUnits::NONE;
    units.add(0);
    let allocated = read(&|| tables.set_filter_units(&next, &grown, units).unwrap());
    assert_eq!(allocated, 0);
    let again = Arc::clone(&tables.get(&next, &grown).unwrap());
    assert!(Arc::ptr_eq(&table.segments[0], &again.segments[0]));
    assert!(!Arc::ptr_eq(&table.segments[1], &again.segments[1]));

    // The allocation stays when the file grows again.
    let longer = append(&vfs, &grown, 22, &alike(3), &small());
    let last = Arc::new(next.grown(grown.segments.len()));
    let allocated = last.filter_units();
    assert_eq!([0, 1, 2].map(|segment| allocated.of(segment)), [1, 0, 4]);
    tables.open_grown(&next, &last, &longer).unwrap();
    let followed = Arc::clone(&tables.get(&last, &longer).unwrap());
    for segment in 0..2 {
        let (before, now) = (&again.segments[segment], &followed.segments[segment]);
        assert!(Arc::ptr_eq(before, now));
    }
}

/// I3 of the writer, and the limit of the format.
#[test]
fn a_sealed_or_full_file_takes_no_append() {
    let vfs = MemoryVfs::default();
    let mut meta = write_to(&vfs, NUMBER, &alike(1), &small());
    let refuses = |meta: &FileMeta| {
        let append = || TableWriter::append(&vfs, Path::new(""), meta, SegmentId(9), &small());
        let append = std::panic::AssertUnwindSafe(append);
        std::panic::catch_unwind(append).is_err()
    };
    for id in 1..SEGMENTS_MAX as u64 {
        assert!(!refuses(&meta));
        meta = append(&vfs, &meta, 20 + id, &alike(2), &small());
    }
    assert!(refuses(&meta));
    meta.segments = meta.segments[1..].to_vec().into();
    assert!(!refuses(&meta));
    meta.sealed = true;
    assert!(refuses(&meta));
}
