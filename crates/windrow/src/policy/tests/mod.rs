//! The policy executed on numbers.

mod amplification;
mod append;
mod expired;
mod garbage_collection;
mod garnering;
mod ingestion;
mod mediums;
mod model;
mod moved_values;
pub(super) mod notation;
mod output;
mod pick;
mod placement;
mod properties;
mod tree_summary;

/// A reproducible random sequence (`SplitMix64`).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let number = (mixed ^ (mixed >> 31)) % u64::from(end);
        u32::try_from(number).expect("a remainder by a u32 is one")
    }
}
