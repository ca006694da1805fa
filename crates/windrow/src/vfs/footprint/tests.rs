//! A file with a model of its page cache, under random reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::Region;
use super::*;
use crate::base::sync::Mutex;

/// The pages of the file.
const PAGES: u64 = 300;

/// A file of [`PAGES`] pages, and which of them are resident.
#[derive(Debug, Default)]
struct CachedFile {
    resident: Mutex<BTreeSet<u64>>,
    /// The ranges that were asked for.
    asked: Mutex<Vec<Range<u64>>>,
}

fn pages(range: Range<u64>) -> Range<u64> {
    range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
}

impl File for CachedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let range = offset..offset + buffer.len() as u64;
        self.resident.lock().extend(pages(range));
        Ok(buffer.len())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(PAGES * PAGE_BYTES)
    }

    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        match advice {
            Advice::WillNeed => {
                self.resident.lock().extend(pages(range.clone()));
                self.asked.lock().push(range);
            }
            Advice::DontNeed => {
                let gone = pages(range);
                self.resident.lock().retain(|page| !gone.contains(page));
            }
            Advice::Random | Advice::Sequential => {}
        }
    }

    fn resident_pages(&self, offset: u64) -> u64 {
        let first = offset / PAGE_BYTES;
        let resident = self.resident.lock();
        let resident = resident.range(first..first + 64);
        resident.fold(0, |bits, page| bits | 1 << (page - first))
    }

    fn map(&self, _: u64) -> io::Result<Arc<Region>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn some_pages() -> impl Strategy<Value = BTreeSet<u64>> {
    let runs = prop::collection::vec((0..PAGES, 1_u64..90), 0..6);
    runs.prop_map(|runs| {
        let runs = runs.into_iter();
        runs.flat_map(|(first, count)| first..PAGES.min(first + count))
            .collect()
    })
}

proptest! {
    #[test]
    fn reads_leave_the_page_cache_as_it_was(
        before in some_pages(),
        reads in prop::collection::vec((0..PAGES * PAGE_BYTES, 1_usize..400_000, any::<bool>()), 0..12),
        others in some_pages(),
    ) {
        let file = Arc::new(CachedFile::default());
        *file.resident.lock() = before.clone();
        let mut footprint = Footprint::new(Arc::clone(&file) as Arc<dyn File>);
        let mut read = BTreeSet::new();
        let mut buffer = vec![0; 400_000];
        for (offset, length, passes) in reads {
            let end = (offset + length as u64).min(PAGES * PAGE_BYTES);
            let length = usize::try_from(end - offset).unwrap();
            footprint.read_exact_at(&mut buffer[..length], offset).unwrap();
            read.extend(pages(offset..end));
            let resident: u64 = pages(offset..end)
                .filter(|page| before.contains(page))
                .map(|page| end.min((page + 1) * PAGE_BYTES) - offset.max(page * PAGE_BYTES))
                .sum();
            prop_assert_eq!(footprint.resident_bytes(offset..end), resident);
            let ahead = end..(PAGES * PAGE_BYTES).min(end + 200_000);
            if ahead.start < ahead.end {
                footprint.ask_ahead(ahead.clone());
                read.extend(pages(ahead));
            }
            if passes {
                footprint.pass(offset);
            }
        }
        // Readers load pages meanwhile.
        file.resident.lock().extend(&others);
        drop(footprint);
        let after = file.resident.lock().clone();
        let expected: BTreeSet<u64> = others.difference(&read).chain(&before).copied().collect();
        // I1, I2
        prop_assert!(after.is_superset(&expected));
        prop_assert!(after.difference(&expected).all(|page| others.contains(page)));
    }
}

#[test]
fn requests_ahead_are_long_and_only_for_what_is_not_resident() {
    let file = Arc::new(CachedFile::default());
    let mut footprint = Footprint::new(Arc::clone(&file) as Arc<dyn File>);
    let end = PAGES * PAGE_BYTES;
    let mut buffer = [0; 4096];
    for offset in (0..end).step_by(4096) {
        footprint.read_exact_at(&mut buffer, offset).unwrap();
        let next = offset + 4096;
        if next < end {
            footprint.ask_ahead(next..end.min(next + (64 << 10)));
        }
        footprint.pass(offset);
    }
    let asked = std::mem::take(&mut *file.asked.lock());
    assert!(
        asked
            .iter()
            .rev()
            .skip(1)
            .all(|range| range.end - range.start >= 32 << 10)
    );
    assert!(asked.windows(2).all(|pair| pair[0].end == pair[1].start));
    drop(footprint);
    assert!(file.resident.lock().is_empty());

    *file.resident.lock() = (0..PAGES).collect();
    let mut footprint = Footprint::new(Arc::clone(&file) as Arc<dyn File>);
    footprint.ask_ahead(0..end);
    assert!(file.asked.lock().is_empty());
    drop(footprint);
    assert_eq!(file.resident.lock().len() as u64, PAGES);
}

#[test]
fn runs_are_those_of_ones() {
    let of = |pages| runs(pages).collect::<Vec<_>>();
    assert!(of(0).is_empty());
    assert_eq!(of(u64::MAX), vec![0..64; 1]);
    assert_eq!(of(0b0110_0001), [0..1, 5..7]);
    assert_eq!(of(1 << 63 | 2), [1..2, 63..64]);
}
