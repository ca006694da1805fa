//! Mappings of a simulated disk.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use windrow::vfs::{Region, RegionBytes};

/// A mapping: the bytes as they were when it was made.
#[derive(Debug)]
pub(super) struct SimRegion {
    bytes: Vec<u8>,
    /// What readers see after damage was planted.
    damaged: OnceLock<Vec<u8>>,
}

impl SimRegion {
    pub(super) fn new(bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            damaged: OnceLock::new(),
        })
    }

    /// What the engine gets.
    pub(super) fn show(self: Arc<Self>) -> Arc<Region> {
        Arc::new(Region::new(Shown(self)))
    }

    /// How many bytes of the file the mapping shows.
    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Changes one byte for all readers from now on. A region is damaged only once.
    pub(super) fn damage(&self, offset: usize, mask: u8) {
        self.damaged.get_or_init(|| {
            let mut bytes = self.bytes.clone();
            bytes[offset] ^= mask;
            bytes
        });
    }
}

/// The bytes that are in memory together.
const PAGE_BYTES: usize = 4096;

/// Shows a mapping that the disk can still damage.
#[derive(Debug)]
struct Shown(Arc<SimRegion>);

impl RegionBytes for Shown {
    fn bytes(&self) -> &[u8] {
        self.0.damaged.get().unwrap_or(&self.0.bytes)
    }

    /// False for a third of the pages of every other file, so that readers also load copies. The length of the file
    /// decides which.
    fn is_resident(&self, range: Range<usize>) -> bool {
        if self.0.bytes.len().div_ceil(PAGE_BYTES).is_multiple_of(2) {
            return true;
        }
        let pages = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
        pages
            .into_iter()
            .all(|page| !(page + self.0.bytes.len()).is_multiple_of(3))
    }
}
